//! The names of devices in configurations for DPDK, netmap and the Linux kernel, on a capture. A cable joins eth0 and eth1; a
//! device of another name receives what is sent to it.

mod support;

use std::rc::Rc;

use router::Registry;
use support::{BATCHES, Memory, books, expectations, run_with};

/// A configuration, the expected values of handlers, and the expected warnings.
struct Case {
    config: &'static str,
    expect: &'static str,
    warnings: &'static [&'static str],
}

/// The capture has COUNT packets with BYTES bytes. Two are shorter than an Ethernet header.
const CASES: [Case; 7] = [
    Case {
        config: "DPDKInfo(65536, NB_SOCKET_MBUF 1024, MEMPOOL_PREFIX x);
            FromDump(testdata/mix.pcap) -> b :: EnsureDPDKBuffer(true, EXTRA_HEADROOM 64, FAIL false)
                -> sent :: AverageCounterMP(0) -> Queue(1000)
                -> to :: ToDPDKDevice(eth0, 0, BLOCKING true, VERBOSE 0, BURST 32, TCO 1);
            from :: FromDPDKDevice(eth1, 0, true, N_QUEUES 2, BURST 32, RSS_AGGREGATE 1, MAC 2:0:0:0:0:1, VLAN_STRIP true, IPCO 1)
                -> got :: AverageCounterIMP -> Discard;",
        expect: "sent.count = COUNT
            got.count = COUNT
            got.byte_count = BYTES
            from.count = COUNT
            from.kernel_drops = 0
            from.class = FromDevice
            from.config = DEVNAME eth1, PROMISC true, BURST 32
            to.class = ToDevice
            to.q = false
            to.config = DEVNAME eth0, BURST 32
            b.class = Null
            b.config =",
        warnings: &[
            "DPDKInfo ‘DPDKInfo@1’: NB_MBUF has no effect here: there is no memory of DPDK",
            "DPDKInfo ‘DPDKInfo@1’: NB_SOCKET_MBUF has no effect here: there is no memory of DPDK",
            "DPDKInfo ‘DPDKInfo@1’: MEMPOOL_PREFIX has no effect here: there is no memory of DPDK",
            "EnsureDPDKBuffer ‘b’: passes packets unchanged: they need no buffers of DPDK here",
            "EnsureDPDKBuffer ‘b’: FORCE_COPY has no effect here: packets are not copied",
            "EnsureDPDKBuffer ‘b’: EXTRA_HEADROOM has no effect here: packets are not copied",
            "EnsureDPDKBuffer ‘b’: FAIL has no effect here: packets are not copied",
            "ToDPDKDevice ‘to’: QUEUE has no effect here: queues, threads and buffers are those of the port",
            "ToDPDKDevice ‘to’: BLOCKING has no effect here: packets without room are dropped as `full`, and InfiniteSource and its like pause",
            "ToDPDKDevice ‘to’: VERBOSE has no effect here: queues, threads and buffers are those of the port",
            "ToDPDKDevice ‘to’: TCO has no effect here: the port leaves checksums as they are: put SetIPChecksum, SetTCPChecksum or SetUDPChecksum before it",
            "FromDPDKDevice ‘from’: QUEUE has no effect here: queues, threads and buffers are those of the port",
            "FromDPDKDevice ‘from’: N_QUEUES has no effect here: queues, threads and buffers are those of the port",
            "FromDPDKDevice ‘from’: RSS_AGGREGATE has no effect here: the port sets no annotation; use AggregateIPFlows or Paint",
            "FromDPDKDevice ‘from’: MAC has no effect here: set it on the interface with `ip link`",
            "FromDPDKDevice ‘from’: VLAN_STRIP has no effect here: frames arrive with the tags that the interface leaves in them",
            "FromDPDKDevice ‘from’: IPCO has no effect here: the port checks no checksums: put CheckIPHeader, CheckTCPHeader or CheckUDPHeader behind it",
        ],
    },
    // A tester: all packets come back, every tenth is measured.
    Case {
        config: "FromDump(testdata/mix.pcap) -> p :: PathSpinlock(lock) -> n :: NumberPacket(60)
                -> r :: RecordTimestamp(COUNTER n, OFFSET 60, N 100000)
                -> d :: TimestampDiff(r, OFFSET 60, SAMPLE 10, VERBOSE true)
                -> a :: AverageCounterIMP -> Queue(1000) -> ToDPDKDevice(0);
            from :: FromDPDKDevice(0, ACTIVE 1) -> got :: Counter -> Discard;
            d[1] -> lost :: Counter -> Discard;
            all :: HandlerAggregate(ELEMENT n, ELEMENT a);
            sum :: Script(TYPE PASSIVE, return $(sub $(all.add count) $(all.avg count)));
            Idle -> s :: ResetIPChecksum(true) -> Discard;",
        expect: "n.count = COUNT
            a.count = COUNT
            lost.count = 0
            got.count = COUNT
            d.index = 249
            sum.run = COUNT
            p.class = Null
            s.class = SetIPChecksum
            s.config = L4 true",
        warnings: &[
            "PathSpinlock ‘p’: passes packets unchanged: threads share no elements here",
            "PathSpinlock ‘p’: LOCK has no effect here: one thread executes the configuration, or each shard",
            "FromDPDKDevice ‘from’: ACTIVE has no effect here: packets are received from the start; put a Switch behind it to discard them",
        ],
    },
    // A port number, and PROMISC by default.
    Case {
        config: "FromDump(testdata/mix.pcap) -> Queue(1000) -> to :: ToDPDKDevice(PORT 0);
            from :: FromDPDKDevice(0, TIMESTAMP false) -> c :: Counter -> Discard;",
        expect: "c.count = COUNT
            c.byte_count = BYTES
            from.count = COUNT
            from.kernel_drops = 0
            from.config = DEVNAME 0, TIMESTAMP false, PROMISC true
            to.q = false
            to.config = DEVNAME 0",
        warnings: &[],
    },
    Case {
        config: "FromDump(testdata/mix.pcap) -> t :: Tee;
            t[0] -> Queue(1000) -> n :: ToNetmapDevice(netmap:x, BURST 128, IQUEUE 64, BLOCKING true);
            t[1] -> Queue(1000) -> r :: ToDPDKRing(MEM_POOL 1, FROM_PROC main, TO_PROC function, TIMEOUT 1);
            m :: FromNetmapDevice(netmap:x, BURST 16, KEEPHAND false, LRO true) -> a :: Counter -> Discard;
            f :: FromDPDKRing(1, main, function) -> b :: Counter -> Discard;",
        expect: "a.count = COUNT
            b.count = COUNT
            b.byte_count = BYTES
            n.config = DEVNAME netmap:x, BURST 128
            m.config = DEVNAME netmap:x, BURST 16, PROMISC true
            m.count = COUNT
            r.config = DEVNAME main
            f.config = DEVNAME main
            f.count = COUNT",
        warnings: &[
            "ToNetmapDevice ‘n’: IQUEUE has no effect here: queues, threads and buffers are those of the port",
            "ToNetmapDevice ‘n’: BLOCKING has no effect here: packets without room are dropped as `full`, and InfiniteSource and its like pause",
            "ToDPDKRing ‘r’: MEM_POOL has no effect here: queues, threads and buffers are those of the port",
            "ToDPDKRing ‘r’: TO_PROC has no effect here: the device is named FROM_PROC",
            "ToDPDKRing ‘r’: TIMEOUT has no effect here: packets without room are dropped as `full`, and InfiniteSource and its like pause",
            "FromNetmapDevice ‘m’: KEEPHAND has no effect here: queues, threads and buffers are those of the port",
            "FromNetmapDevice ‘m’: LRO has no effect here: set it on the interface with `ip link`",
            "FromDPDKRing ‘f’: MEM_POOL has no effect here: queues, threads and buffers are those of the port",
            "FromDPDKRing ‘f’: TO_PROC has no effect here: the device is named FROM_PROC",
        ],
    },
    Case {
        config: "FromDump(testdata/mix.pcap) -> Queue(1000) -> ToDevice(eth0);
            p :: PollDevice(eth1, true, 8, QUIET true, UP_CALL x.y) -> t :: Tee;
            t[0] -> h :: ToHostSniffers(eth1);
            t[1] -> c :: Counter -> to :: ToHost;
            Idle -> also :: ToHost(TYPE ETHER);",
        expect: "p.config = DEVNAME eth1, PROMISC true, BURST 8
            p.count = COUNT
            h.class = ToHost
            h.config = DEVNAME eth1, SNIFFERS true
            h.dev_name = sniffers
            h.drops = 0
            h.fates = delivered 2498\\nlost too_short 2
            h.losses = too_short 2
            c.count = COUNT
            c.byte_count = BYTES
            to.dev_name = host
            to.drops = 0
            to.fates = delivered 2498\\nlost too_short 2
            to.losses = too_short 2
            also.dev_name = host
            also.drops = 0",
        warnings: &[
            "PollDevice ‘p’: QUIET has no effect here: queues, threads and buffers are those of the port",
            "PollDevice ‘p’: UP_CALL has no effect here: the state of the link is not watched",
        ],
    },
    // Without a name, the interface of the only FromHost.
    Case {
        config: "FromHost(fake0, 10.9.0.1/24) -> Discard;
            FromDump(testdata/mix.pcap) -> c :: Counter -> to :: ToHost;",
        expect: "c.count = COUNT
            c.byte_count = BYTES
            to.drops = 0
            to.fates = delivered 2498\\nlost too_short 2
            to.losses = too_short 2",
        warnings: &[],
    },
    Case {
        config: "FromDump(testdata/mix.pcap) -> Queue(1000) -> ToDevice(eth0, METHOD DPDK);
            from :: FromDevice(eth1, METHOD NETMAP) -> c :: Counter -> Discard;",
        expect: "c.count = COUNT
            c.byte_count = BYTES
            from.count = COUNT",
        warnings: &[
            "FromDevice ‘from’: METHOD NETMAP has no effect here: the interface is opened as with METHOD LINUX",
            "ToDevice: METHOD DPDK has no effect here: the interface is opened as with METHOD LINUX",
        ],
    },
];

#[test]
fn names_of_other_programs_pass_the_packets_of_a_capture() {
    let whole = "FromDump(testdata/mix.pcap) -> c :: Counter -> Discard;";
    let whole = run_with(whole, 256, Rc::new(Memory::default())).unwrap();
    let [count, bytes] = ["c.count", "c.byte_count"].map(|path| whole.router.read(path, "").unwrap());
    assert!(count.parse::<u32>().unwrap() > 100, "{count}");
    for (index, case) in CASES.iter().enumerate() {
        let expect = case.expect.replace("COUNT", &count).replace("BYTES", &bytes);
        for batch in BATCHES {
            let run = run_with(case.config, batch, Rc::new(Memory::connected())).unwrap();
            let mut differences = expectations(&run, &expect);
            differences.extend(books::check(&run));
            assert!(differences.is_empty(), "case {index}, batch {batch}: {}", differences.join("\n"));
            let warnings = click_lang::in_parts(run.router.warnings().to_vec());
            // In their own words, without the element.
            let own = |text: &str| text.find(": ").map_or(text, |at| &text[at + 2..]).to_string();
            let warnings: Vec<_> = warnings.iter().map(|warning| own(&warning.message)).collect();
            let wanted: Vec<_> = case.warnings.iter().map(|text| own(text)).collect();
            assert_eq!(warnings, wanted, "case {index}");
        }
    }
}

#[test]
fn a_warning_names_the_element_and_is_at_the_argument() {
    let config = "FromDPDKDevice(0, N_QUEUES 2) -> Discard;";
    let is_class = |name: &str| elements::class(name).is_some();
    let compiled = click_lang::compile(config, &click_lang::Options::new("test", &is_class));
    let found = router::check(compiled, Registry::new(elements::REGISTRY), Rc::new(Memory::connected()));
    let [warning] = &found[..] else { panic!("{found:?}") };
    let expected = "FromDPDKDevice ‘FromDPDKDevice@1’: N_QUEUES has no effect here: queues, threads and buffers are those of the port";
    assert_eq!(warning.message, expected);
    assert_eq!(warning.location.as_ref().map(|place| place.column), Some(19));
}

#[test]
fn arguments_without_a_meaning_are_errors() {
    let cases = [
        ("FromDPDKDevice(0, FLOW_RULES_FILE x) -> Discard", "FLOW_RULES_FILE: unknown argument"),
        ("FromDPDKDevice -> Discard", "DEVNAME: required argument missing"),
        ("Idle -> ToDPDKDevice(0, 0, 1)", "too many arguments"),
        ("FromDevice(0, METHOD FAST) -> Discard", "bad METHOD"),
        ("Idle -> ToHost(TYPE IP)", "TYPE: only ETHER is possible"),
        ("Idle -> ToHost(fake0)", "requires an initialized FromHost with the same dev_name"),
    ];
    for (config, message) in cases {
        let Err(error) = run_with(config, 256, Rc::new(Memory::connected())) else { panic!("{config} runs") };
        assert!(error.contains(message), "{config}: {error}");
    }
}
