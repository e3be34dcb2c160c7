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
            from :: FromDPDKDevice(0, ACTIVE 1, FLOW_RULES_FILE rules) -> got :: Counter -> Discard;
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
            "FromDPDKDevice ‘from’: FLOW_RULES_FILE has no effect here: queues are those of the port; put an IPFilter behind it for rules that drop packets",
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
            FromDump(testdata/mix.pcap) -> c :: Counter -> to :: ToHost;
            Idle -> h :: ToHostSniffers(fake0);",
        expect: "c.count = COUNT
            c.byte_count = BYTES
            h.dev_name = fake0
            h.drops = 0
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

/// Configurations for two ports or more, in the shapes of those of Click and FastClick, and what is expected. A device gets what is
/// sent to it: the capture goes to those with an even number, by the direction of its packets, and the configurations send to the
/// others.
const SHAPES: [(&str, &str); 6] = [
    // A router of two networks, whose neighbours are asked for by ARP.
    (
        r"AddressInfo(inside 10.0.0.254 2:0:0:0:0:2, outside 192.0.2.1 2:0:0:0:0:1);
        FromDPDKDevice(0, BURST 32) -> c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
        FromDPDKDevice(2, N_QUEUES 4) -> c1 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
        out0 :: ToDPDKDevice(1); out1 :: ToDPDKDevice(3);
        c0[0] -> ARPResponder(inside) -> out0; c1[0] -> ARPResponder(outside) -> out1;
        c0[1] -> [1] arp0 :: ARPQuerier(inside) -> out0; c1[1] -> [1] arp1 :: ARPQuerier(outside) -> out1;
        arp0[1] -> out0; arp1[1] -> out1;
        c0[2] -> Paint(1) -> Strip(14) -> ip0 :: CheckIPHeader(INTERFACES 10.0.0.254/24 192.0.2.1/24)
            -> rt :: LookupIPRouteMP(10.0.0.254/32 0, 192.0.2.1/32 0, 10.0.0.0/24 1, 0.0.0.0/0 192.0.2.254 2);
        c1[2] -> Paint(2) -> Strip(14) -> ip1 :: CheckIPHeader(INTERFACES 10.0.0.254/24 192.0.2.1/24) -> rt;
        rt[0] -> own :: Counter -> Discard;
        rt[1] -> DropBroadcasts -> p0 :: PaintTee(1) -> o0 :: IPGWOptions(10.0.0.254) -> FixIPSrc(10.0.0.254) -> t0 :: DecIPTTL
            -> f0 :: IPFragmenter(576) -> [0] arp0;
        rt[2] -> DropBroadcasts -> p1 :: PaintTee(2) -> o1 :: IPGWOptions(192.0.2.1) -> FixIPSrc(192.0.2.1) -> t1 :: DecIPTTL
            -> f1 :: IPFragmenter(576) -> [0] arp1;
        errors :: Null -> e :: Counter -> [0] rt;
        t0[1] -> ICMPError(10.0.0.254, timeexceeded) -> errors; t1[1] -> ICMPError(192.0.2.1, timeexceeded) -> errors;
        f0[1] -> ICMPError(10.0.0.254, unreachable, needfrag) -> errors; f1[1] -> ICMPError(192.0.2.1, unreachable, needfrag) -> errors;
        o0[1] -> ICMPError(10.0.0.254, parameterproblem) -> errors; o1[1] -> ICMPError(192.0.2.1, parameterproblem) -> errors;
        p0[1] -> r0 :: Counter -> ICMPError(10.0.0.254, redirect, host) -> errors;
        p1[1] -> r1 :: Counter -> ICMPError(192.0.2.1, redirect, host) -> errors;
        c0[3] -> rest :: Counter -> Discard; c1[3] -> rest;
        FromDump(testdata/mix.pcap) -> side :: Classifier(0/020000000002, -);
        side[0] -> ToDPDKDevice(0); side[1] -> ToDPDKDevice(2);
        FromDPDKDevice(1) -> got0 :: Counter -> neighbour0 :: Classifier(12/0806 20/0001, -);
        FromDPDKDevice(3) -> got1 :: Counter -> neighbour1 :: Classifier(12/0806 20/0001, -);
        neighbour0[0] -> ask0 :: Counter -> ARPResponder(0.0.0.0/0 4:0:0:0:0:1) -> [1] arp0; neighbour0[1] -> Discard;
        neighbour1[0] -> ask1 :: Counter -> ARPResponder(0.0.0.0/0 4:0:0:0:0:2) -> [1] arp1; neighbour1[1] -> Discard;
        Script(wait 2s, stop);",
        r"ask0.count = 53
            ask1.count = 1
            e.count = 0
            got0.count = 2200
            got1.count = 1672
            ip0.losses = too_short 7\nbad_version 3\nbad_checksum 5\nbad_length 3\nbad_header_length 3
            ip1.losses = bad_length 4\ntoo_short 1\nbad_checksum 1\nbad_header_length 4\nbad_version 2
            own.count = 0
            r0.count = 0
            r1.count = 0
            rest.count = 253",
    ),
    // A translator of addresses.
    (
        r"AddressInfo(inside 10.0.0.254 2:0:0:0:0:2, outside 192.0.2.1 2:0:0:0:0:1);
        inside_in :: FromDPDKDevice(0); outside_in :: FromDPDKDevice(2);
        inside_out :: ToDPDKDevice(1, BLOCKING true); outside_out :: ToDPDKDevice(3, BLOCKING true);
        IPRewriterPatterns(to_world 192.0.2.1 50000-65535 - -);
        tcp :: TCPRewriter(pattern to_world 0 1, pass 1); udp :: UDPRewriter(pattern to_world 0 1, pass 1);
        ping :: ICMPPingRewriter(pattern to_world 0 1, pass 1); error :: ICMPRewriter(tcp udp ping);
        inside_in -> ci :: Classifier(12/0806, 12/0800, -); outside_in -> co :: Classifier(12/0806, 12/0800, -);
        ci[1] -> Strip(14) -> CheckIPHeader -> i :: IPClassifier(tcp, udp, icmp type echo, -);
        co[1] -> Strip(14) -> CheckIPHeader -> o :: IPClassifier(tcp, udp, icmp type echo-reply, icmp, -);
        i[0] -> [0] tcp; i[1] -> [0] udp; i[2] -> [0] ping; i[3] -> other :: Counter -> Discard;
        o[0] -> [1] tcp; o[1] -> [1] udp; o[2] -> [1] ping; o[3] -> [0] error; o[4] -> other;
        to_out :: Null -> sent_out :: Counter -> EtherEncap(0x0800, outside, 4:0:0:0:0:1) -> outside_out;
        to_in :: Null -> sent_in :: Counter -> EtherEncap(0x0800, inside, 4:0:0:0:0:2) -> inside_out;
        tcp[0] -> tcp_out :: Counter -> to_out; udp[0] -> udp_out :: Counter -> to_out; ping[0] -> ping_out :: Counter -> to_out;
        tcp[1] -> to_in; udp[1] -> to_in; ping[1] -> to_in; error[0] -> to_in;
        ci[0] -> arp :: Counter -> Discard; co[0] -> arp; ci[2] -> rest :: Counter -> Discard; co[2] -> rest;
        FromDump(testdata/mix.pcap) -> side :: Classifier(0/020000000001, -);
        side[0] -> ToDPDKDevice(0); side[1] -> ToDPDKDevice(2);
        FromDPDKDevice(1) -> got0 :: Counter -> Discard; FromDPDKDevice(3) -> got1 :: Counter -> Discard;
        Script(wait 1s, stop);",
        r"CheckIPHeader@14.losses = bad_length 4\ntoo_short 1\nbad_checksum 1\nbad_header_length 4\nbad_version 2
            CheckIPHeader@17.losses = too_short 7\nbad_version 3\nbad_checksum 5\nbad_length 3\nbad_header_length 3
            arp.count = 0
            error.losses = no_mapping 26
            got0.count = 1101
            got1.count = 1061
            other.count = 26
            ping_out.count = 0
            rest.count = 253
            sent_in.count = 1101
            sent_out.count = 1061
            tcp_out.count = 925
            udp_out.count = 136",
    ),
    // A gateway that shares what it takes with its host.
    (
        r"AddressInfo(lan 10.0.0.254 2:0:0:0:0:2, wan 192.0.2.1 2:0:0:0:0:1);
        PollDevice(0) -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
        host :: ToHost; FromHost(fake0, 10.9.0.1/24) -> Discard;
        c[0] -> ARPResponder(lan) -> Queue -> ToDevice(1);
        c[1] -> t :: Tee -> host; t[1] -> answers :: Counter -> Discard;
        c[2] -> CheckIPHeader(14) -> Strip(14) -> k :: IPClassifier(dst udp port domain, dst tcp port www or https, -);
        k[0] -> asked :: Counter -> rw :: IPRewriter(pattern 192.0.2.1 1024-65535 192.0.2.53 - 0 1)
            -> EtherEncap(0x0800, wan, 4:0:0:0:0:1) -> q :: Queue(3000) -> BandwidthShaper(100MBps) -> ToDevice(3);
        rw[1] -> Discard;
        k[1] -> web :: Counter -> IPFilter(deny src host 10.0.0.2, allow all) -> fetched :: Counter -> Discard;
        k[2] -> Unstrip(14) -> kept :: Counter -> host;
        c[3] -> ToHostSniffers;
        FromDump(testdata/mix.pcap) -> Queue(3000) -> ToDevice(0);
        FromDevice(1) -> got0 :: Counter -> Discard; FromDevice(3) -> got1 :: Counter -> CheckIPHeader(14) -> Strip(14) -> CheckUDPHeader -> udp :: Counter -> Discard;
        Script(wait 1s, stop);",
        r"CheckIPHeader@13.losses = too_short 8\nbad_length 7\nbad_version 5\nbad_checksum 6\nbad_header_length 7
            IPFilter@24.losses = denied 17
            ToHostSniffers@29.losses = too_short 2
            answers.count = 0
            asked.count = 34
            fetched.count = 548
            got0.count = 0
            got1.count = 34
            kept.count = 1615
            udp.count = 34
            web.count = 565",
    ),
    // A switch with the spanning tree protocol, which forwards after twice the delay.
    (
        r"f0 :: FromDPDKDevice(0) -> c0 :: Classifier(14/4242, 0/020000000001, -);
        f1 :: FromDPDKDevice(2) -> c1 :: Classifier(14/4242, 0/02000000ffff, -);
        w0 :: Queue(3000) -> ToDPDKDevice(1); w1 :: Queue(3000) -> ToDPDKDevice(3);
        s :: EtherSwitch; in :: Suppressor; out :: Suppressor;
        c0[2] -> [0] in [0] -> [0] s [0] -> [0] out [0] -> w0;
        c1[2] -> [1] in [1] -> [1] s [1] -> [1] out [1] -> w1;
        tree :: EtherSpanTree(2:0:0:0:0:9, in, out, s);
        c0[0] -> [0] tree [0] -> w0; c1[0] -> [1] tree [1] -> w1;
        c0[1] -> own :: Counter -> Discard; c1[1] -> own;
        cap :: FromDump(testdata/mix.pcap, ACTIVE false) -> side :: Classifier(0/020000000001, -);
        side[0] -> ToDPDKDevice(2); side[1] -> ToDPDKDevice(0);
        FromDPDKDevice(1) -> got0 :: Counter -> Discard; FromDPDKDevice(3) -> got1 :: Counter -> Discard;
        Script(wait 40s, write cap.active true, wait 1s, stop);",
        r"got0.count = 1237
            got1.count = 1303
            own.count = 0
            tree.ports = 0 designated forwarding\n1 designated forwarding
            tree.root = E000.02-00-00-00-00-09 0
            in.active0 = true
            out.active1 = true
            s.table = 02-00-00-00-00-01 0\n02-00-00-00-00-02 1",
    ),
    // A load balancer.
    (
        r"FromNetmapDevice(netmap:in, BURST 64) -> c :: Classifier(12/0800, -) -> MarkIPHeader(14) -> CheckIPHeader(14) -> k :: IPClassifier(dst tcp port 443, udp, -);
        k[0] -> Strip(14) -> rw :: IPRewriter(servers);
        servers :: RoundRobinIPMapper(- - 10.1.0.1 - 0 1, - - 10.1.0.2 - 0 1, - - 10.1.0.3 - 0 1);
        rw[0] -> server :: IPClassifier(dst host 10.1.0.1, dst host 10.1.0.2, dst host 10.1.0.3);
        server[0] -> s0 :: Counter -> Unstrip(14) -> ToNetmapDevice(netmap:s0);
        server[1] -> s1 :: Counter -> Unstrip(14) -> ToNetmapDevice(netmap:s1);
        server[2] -> s2 :: Counter -> Unstrip(14) -> ToNetmapDevice(netmap:s2);
        rw[1] -> Discard;
        k[1] -> hash :: HashSwitch(26, 8); hash[0] -> h0 :: Counter -> Discard; hash[1] -> h1 :: Counter -> Discard;
        k[2] -> other :: Counter -> Discard; c[1] -> rest :: Counter -> Discard;
        FromDump(testdata/mix.pcap) -> ToNetmapDevice(netmap:in);
        FromNetmapDevice(netmap:s0) -> got0 :: Counter -> Discard; FromNetmapDevice(netmap:s1) -> got1 :: Counter -> Discard;
        FromNetmapDevice(netmap:s2) -> got2 :: Counter -> Discard;
        Script(wait 1s, stop);",
        r"CheckIPHeader@4.losses = too_short 8\nbad_length 7\nbad_version 5\nbad_checksum 6\nbad_header_length 7
            got0.count = 165
            got1.count = 155
            got2.count = 137
            h0.count = 159
            h1.count = 126
            other.count = 1472
            rest.count = 253
            s0.count = 165
            s1.count = 155
            s2.count = 137",
    ),
    // A chain that prints, counts and groups.
    (
        r"FromDPDKDevice(0, RSS_AGGREGATE true) -> EnsureDPDKBuffer -> Print(in, ACTIVE false) -> all :: AverageCounterMP
            -> CheckLength(1514) -> c :: Classifier(12/0800, 12/86dd, -);
        c[0] -> Strip(14) -> CheckIPHeader -> IPPrint(ip, ACTIVE false) -> AggregateIPFlows -> flows :: AggregateCounter
            -> AggregateIP(ip src) -> hosts :: AggregateCounter -> kind :: IPClassifier(tcp opt syn, tcp, udp, icmp, -);
        kind[0] -> syn :: Counter -> out :: Null; kind[1] -> tcp :: Counter -> out; kind[2] -> udp :: Counter -> out;
        kind[3] -> icmp :: Counter -> out; kind[4] -> other :: Counter -> out;
        out -> Unstrip(14) -> EtherMirror -> NumberPacket(60) -> Queue(3000) -> ToDPDKDevice(1);
        c[1] -> Strip(14) -> six :: CheckIP6Header -> v6 :: Counter -> Discard;
        c[2] -> rest :: Counter -> Discard;
        FromDump(testdata/mix.pcap) -> ToDPDKDevice(0); FromDPDKDevice(1) -> got0 :: Counter -> Discard;
        Script(wait 1s, stop);",
        r"AggregateIPFlows@10.losses = no_flow 52
            CheckIPHeader@8.losses = too_short 8\nbad_length 7\nbad_version 5\nbad_checksum 6\nbad_header_length 7
            got0.count = 2152
            icmp.count = 0
            other.count = 0
            rest.count = 2
            six.losses = too_short 1\nbad_version 1
            syn.count = 258
            tcp.count = 1619
            udp.count = 275
            v6.count = 249",
    ),
];

#[test]
fn shapes_of_other_configurations_run_on_a_capture() {
    let mut failures = Vec::new();
    for (index, (config, expect)) in SHAPES.iter().enumerate() {
        for batch in [1, 256] {
            let run = run_with(config, batch, Rc::new(Memory::connected())).unwrap();
            let mut differences = expectations(&run, expect);
            differences.extend(books::check(&run));
            failures.extend(differences.iter().map(|text| format!("shape {index}, batch {batch}: {text}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
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
        ("FromDPDKDevice(0, FLOW_RULES x) -> Discard", "FLOW_RULES: unknown argument"),
        ("FromDPDKDevice -> Discard", "DEVNAME: required argument missing"),
        ("Idle -> ToDPDKDevice(0, 0, 1)", "too many arguments"),
        ("FromDevice(0, METHOD FAST) -> Discard", "bad METHOD FAST: use LINUX, PCAP or XDP"),
        ("Idle -> ToHost(TYPE IP)", "TYPE: only ETHER is possible"),
        ("Idle -> ToHost(fake0)", "requires an initialized FromHost with the same dev_name"),
    ];
    for (config, message) in cases {
        let Err(error) = run_with(config, 256, Rc::new(Memory::connected())) else { panic!("{config} runs") };
        assert!(error.contains(message), "{config}: {error}");
    }
}
