from gb300serve.host.linux import Socket, parse_listening_sockets

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
END = "00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0"


def test_listening_sockets_of_both_families() -> None:
    text = (
        f"{HEAD}   0: 0100007F:7536 00000000:0000 0A {END}\n"
        f"   1: 0100007F:7536 0100007F:C350 01 {END}\n"
        f"   2: 00000000000000000000000001000000:7536 {'0' * 32}:0000 0A {END}\n"
    )
    assert list(parse_listening_sockets(text)) == [Socket("127.0.0.1", 30006, "4711"), Socket("::1", 30006, "4711")]
    assert list(parse_listening_sockets("")) == []
