"""The engine on real processes and on a real Dask cluster."""

import os

import pytest
from distributed import LocalCluster

from dataprep.engine import Workers, run_tasks
from schemas.errors import FormatError, MachineError, UsageError


def square(number):
    return number * number


def fail_on_three(number):
    if number == 3:
        raise FormatError("three", hint="not three", path="file", line=3)
    return number


def die_on_three(number):
    if number == 3:
        os._exit(7)
    return number


@pytest.mark.parametrize("number", [1, 2])
def test_results_come_in_order_and_each_is_told(number):
    told = []
    assert run_tasks(square, range(9), Workers(number=number), told.append) == [n * n for n in range(9)]
    assert sorted(told) == list(range(9))


def test_no_tasks():
    assert run_tasks(square, [], Workers()) == []


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_of_ours_arrives_whole(number):
    with pytest.raises(FormatError) as caught:
        run_tasks(fail_on_three, range(5), Workers(number=number))
    assert (str(caught.value), caught.value.hint) == ("file:3: three", "not three")


def test_a_lost_worker_is_a_clear_error():
    before = dict(os.environ)
    with pytest.raises(MachineError, match="worker"):
        run_tasks(die_on_three, range(5), Workers(number=2))
    assert dict(os.environ) == before


def test_a_cluster_gives_the_same(tmp_path):
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path) as cluster:
        told = []
        workers = Workers(scheduler=cluster.scheduler_address)
        assert run_tasks(square, range(9), workers, told.append) == [n * n for n in range(9)]
        assert sorted(told) == list(range(9))
        with pytest.raises(FormatError, match="three"):
            run_tasks(fail_on_three, range(5), workers)


def test_no_scheduler_there_is_a_clear_error():
    with pytest.raises(UsageError, match="no Dask scheduler"):
        run_tasks(square, [1], Workers(scheduler="tcp://127.0.0.1:1"))
