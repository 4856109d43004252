"""Where recordings and their transcripts are found."""

from dataprep.sources.find import find_source
from dataprep.sources.source import DEFAULT_SPEAKER, Source, SourceRow

__all__ = ["DEFAULT_SPEAKER", "Source", "SourceRow", "find_source"]
