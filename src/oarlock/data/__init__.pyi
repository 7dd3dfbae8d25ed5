# Written by tools/stubs.py, which reads what the package declares.

"""Data sources of many kinds, as rows and batches for programs."""

from oarlock.data.image_folder import ImageFolder as ImageFolder
from oarlock.data.recognition import read as read
from oarlock.data.selection import Columns as Columns
from oarlock.data.source import Source as Source
from oarlock.data.source import Stream as Stream
from oarlock.data.table import Table as Table

__all__: list[str]
