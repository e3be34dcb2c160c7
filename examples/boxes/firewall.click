// A firewall for a box with two ports: packets arrive at port 0, and those that may pass leave at port 1.
//
// It protects the network 10.0.0.0/24 and sees both directions. Incoming packets must belong to a connection that was
// opened from inside. Write `filter.rules` to change the rules under traffic.
//
//     clickbox create firewall examples/boxes/firewall.click --attach lan --attach pipe:inner

FromDevice(0)
    -> kind :: Classifier(12/0800, 12/86dd, -);
kind [2] -> dropped_neither_ip_nor_ip6 :: Counter -> Discard;

// Only the mail server may send mail. Pings from outside are denied.
filter :: IPFilter(
        deny src net 10.0.0.0/24 and dst port 25,
        deny dst net 10.0.0.0/24 and icmp type echo,
        allow all)
    -> direction :: IPClassifier(src net 10.0.0.0/24 and (tcp or udp), tcp or udp, -);

// Drop malformed packets.
kind [0] -> Strip(14)
    -> check_ip :: CheckIPHeader
    -> protocol :: IPClassifier(ip frag, tcp, udp, icmp, -);
protocol [0] -> dropped_fragment :: Counter -> Discard;
protocol [1] -> check_tcp :: CheckTCPHeader -> filter;
protocol [2] -> check_udp :: CheckUDPHeader -> filter;
protocol [3] -> check_icmp :: CheckICMPHeader -> filter;
protocol [4] -> dropped_other_protocol :: Counter -> Discard;

connections :: IPRewriter(keep 0 1, drop);
direction [0] -> [0] connections;
direction [1] -> [1] connections;

connections [0] -> passed :: Unstrip(14);
connections [1] -> passed;
direction [2] -> passed;
kind [1] -> Strip(14) -> check_ip6 :: CheckIP6Header -> passed;

passed -> out :: Counter -> queue :: Queue(2048) -> ToDevice(1);
