"""Prints a line for each file of a directory: its name and this reader's verdict, a label of SPEC 9 or ok. Go's tests compare them with theirs."""

import os
import sys

from prelift import File, PreliftError

for name in sorted(os.listdir(sys.argv[1])):
    try:
        File.open(os.path.join(sys.argv[1], name)).verify()
        print(name, "ok")
    except PreliftError as e:
        print(name, e.label, e)
