import pickle

from trainer.data.buffers import BatchBuffers


def test_a_buffer_is_used_again_only_when_nobody_holds_it():
    buffers = BatchBuffers()
    held = [buffers.empty(3, 4) for _ in range(6)]  # more than are kept
    for place, tensor in enumerate(held):
        tensor.fill_(place)
    part = held[2][1:]
    del tensor
    held[2] = None
    again = buffers.empty(2, 5)
    again.fill_(99)
    assert [float(tensor[0, 0]) for place, tensor in enumerate(held) if place != 2] == [0, 1, 3, 4, 5]
    assert (part == 2).all()  # a slice of a batch holds it too
    where = held[0].data_ptr()
    del held
    assert where in {buffers.empty(3, 4).data_ptr() for _ in range(5)}


def test_shapes_grow_and_shrink():
    buffers = BatchBuffers()
    for size in (1, 50, 3, 1000, 2):
        assert buffers.empty(size, 7).shape == (size, 7)
    assert pickle.loads(pickle.dumps(buffers)).empty(2).shape == (2,)
