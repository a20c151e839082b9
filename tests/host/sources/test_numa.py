from gb300serve.host.linux import numa_cpulist, numa_meminfo, numa_nodes, numa_page_cache


def test_nodes_and_their_files() -> None:
    assert numa_nodes(("has_cpu", "node0", "node1", "online", "possible")) == ("node0", "node1")
    assert numa_cpulist("node1") == "/sys/devices/system/node/node1/cpulist"
    assert numa_meminfo("node1") == "/sys/devices/system/node/node1/meminfo"


def test_page_cache() -> None:
    assert numa_page_cache("Node 1 MemTotal:       261865472 kB\nNode 1 FilePages:       52428800 kB\n") == 50 * 1024**3
    assert numa_page_cache("Node 1 MemTotal: 3 kB\n") == 0
