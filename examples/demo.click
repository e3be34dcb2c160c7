// The demonstration: a firewall, a NAT and a flow monitor between a small network and its uplink.
//
// Run it on the capture that ships with the project:   clickbox demo
// or, from the root of the repository:                 clickbox run examples/demo.click
//
// The capture was taken on the inner side of the gateway of 10.0.0.0/24. It contains TCP, UDP, DNS and pings, IPv4 and
// IPv6, in both directions; a port scan from outside; and some malformed packets. Counters with names that begin with
// `dropped_` count packets that are dropped on purpose. The summary of the demonstration lists them by these names.

define($CAPTURE testdata/mix.pcap, $PUBLIC 198.51.100.1);

// Drop malformed packets.
in :: FromDump($CAPTURE, STOP true)
    -> kind :: Classifier(12/0800, 12/86dd, -);
kind [2] -> dropped_neither_ip_nor_ip6 :: Counter -> Discard;

kind [0] -> Strip(14)
    -> check_ip :: CheckIPHeader
    -> protocol :: IPClassifier(ip frag, tcp, udp, icmp, -);
protocol [0] -> dropped_fragment :: Counter -> Discard;
protocol [1] -> check_tcp :: CheckTCPHeader -> direction :: IPClassifier(src net 10.0.0.0/24, -);
protocol [2] -> check_udp :: CheckUDPHeader -> direction;
protocol [3] -> check_icmp :: CheckICMPHeader -> direction;
protocol [4] -> dropped_other_protocol :: Counter -> Discard;

// The firewall. Outgoing mail is dropped, because only the mail server may send it. An incoming packet must belong to a
// connection that a host of the network has opened; all others, such as those of the port scan, are dropped.
direction [0] -> leaving :: IPFilter(1 dst port 25, allow all);
leaving [1] -> dropped_mail_from_inside :: Counter -> Discard;
leaving [0] -> out :: IPClassifier(tcp or udp, -);
direction [1] -> entering :: IPClassifier(tcp or udp, icmp type echo-reply, -);
entering [2] -> dropped_ping_from_outside :: Counter -> Discard;

connections :: IPRewriter(keep 0 1, drop);
out [0] -> [0] connections;
entering [0] -> [1] connections;

// The NAT: outgoing packets get the public address and one of its ports; pings get one of its identifiers.
nat :: IPRewriter(pattern $PUBLIC 1024-65535 - - 0 0);
ping_nat :: ICMPPingRewriter(pattern $PUBLIC - - - 0 0);
// The flow monitor: annotates every packet with the number of its flow, and counts packets per flow.
elementclass Monitor {
    input -> flows :: AggregateIPFlows -> counts :: AggregateCounter -> output;
    // Pings belong to no TCP or UDP flow.
    flows [1] -> output;
}

connections [0] -> nat
    -> monitor :: Monitor
    -> way :: IPClassifier(dst net 10.0.0.0/24, -);
out [1] -> ping_nat -> monitor;
connections [1] -> monitor;
entering [1] -> monitor;

way [0] -> to_hosts :: Counter -> Discard;
way [1] -> to_uplink :: Counter -> Discard;

// IPv6 needs no NAT: packets are checked and counted.
kind [1] -> Strip(14) -> check_ip6 :: CheckIP6Header -> by_ip6 :: Counter -> Discard;
