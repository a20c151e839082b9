from gb300serve.host.sources.numa import cpulist, meminfo, nodes, page_cache


def test_nodes_and_their_files() -> None:
    assert nodes(("has_cpu", "node0", "node1", "online", "possible")) == ("node0", "node1")
    assert cpulist("node1") == "/sys/devices/system/node/node1/cpulist"
    assert meminfo("node1") == "/sys/devices/system/node/node1/meminfo"


def test_page_cache() -> None:
    assert page_cache("Node 1 MemTotal:       261865472 kB\nNode 1 FilePages:       52428800 kB\n") == 50 * 1024**3
    assert page_cache("Node 1 MemTotal: 3 kB\n") == 0
