from gb300serve.host.nvidia import csv_rows, mebibytes, number, whole


def test_values_by_column_without_the_unit_and_without_what_is_missing() -> None:
    text = "index, memory.used [MiB], power.limit [W], a, b, c\n0, 12 MiB, [N/A], [Not Supported], N/A, x\n\n"
    assert list(csv_rows(text)) == [{"index": "0", "memory.used": "12 MiB", "c": "x"}]


def test_the_last_column_takes_the_commas() -> None:
    assert list(csv_rows("pid, name\n7, python3 -c a, b\n")) == [{"pid": "7", "name": "python3 -c a, b"}]


def test_rows_of_nothing() -> None:
    assert list(csv_rows("")) == []
    assert list(csv_rows("pid, name\n")) == []
    assert list(csv_rows("pid, name\n[N/A], [Insufficient Permissions]\n")) == []


def test_numbers() -> None:
    assert (number("700.00 W"), number("143771 MiB"), number(None), number("Disabled")) == (700.0, 143771.0, None, None)
    assert (whole("12"), whole("-"), whole(None)) == (12, None, None)
    assert (mebibytes("2 MiB"), mebibytes(None)) == (2 * 1024**2, None)
