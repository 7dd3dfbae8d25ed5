"""The kinds of data as type checkers and editors see them. Their names load when they are first used."""

from oarlock.data.image_folder import ImageFolder as ImageFolder
from oarlock.data.recognition import read as read
from oarlock.data.selection import Columns as Columns
from oarlock.data.source import Source as Source
from oarlock.data.stream import Stream as Stream
from oarlock.data.table import Table as Table
