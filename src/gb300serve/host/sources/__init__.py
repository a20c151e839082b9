"""One fact a file: what to run or to read, and a pure parser of what it says."""
