from gb300serve.importers.report import LEFT_OUT, MAX_FINDINGS, MENDED, UNREADABLE, Report, TextPosition, shorten

TOKEN = "hf_Qw3rTy7uIoPaSdFgHjKl"


def test_each_finding_once_with_its_place() -> None:
    report = Report("input.sh")
    for _ in range(2):
        report.add(MENDED, "a", "b", TextPosition(3, 4), "c")
    (found,) = report.diagnostics
    assert (found.code, found.severity, found.message, found.hint) == ("IMP001", "warning", "a", "b")
    assert (found.file, found.line, found.column, found.path) == ("input.sh", 3, 4, "c")


def test_no_message_contains_a_secret_even_one_found_later() -> None:
    report = Report()
    report.add(MENDED, "says swordfish", f"and {TOKEN}", None, "env.swordfish")
    report.hide("swordfish")
    (found,) = report.diagnostics
    assert "swordfish" not in repr(found)
    assert TOKEN not in repr(found)


def test_the_number_of_findings_is_limited() -> None:
    report = Report()
    for number in range(MAX_FINDINGS + 50):
        report.add(LEFT_OUT, str(number))
    report.add(UNREADABLE, "the end")
    assert (len(report.diagnostics), report.diagnostics[-1].message) == (MAX_FINDINGS + 1, "the end")


def test_short_enough_for_a_message() -> None:
    assert (shorten("a\n  b"), shorten("x" * 70), len(shorten("x" * 70))) == ("a b", "x" * 59 + "…", 60)
