// A firewall that is transparent: it has no addresses, and frames pass unchanged. Port 0 is inside, port 1 is outside.
//
// - ARP passes in both directions.
// - IPv4: hosts inside may open TCP and UDP connections and ping. Their replies pass. Hosts outside may open only what
//   `rules` allows. Fragments are dropped, because they have no ports.
// - IPv6: packets from inside pass. From outside pass ICMPv6 (with neighbour discovery), TCP segments with the ACK flag
//   and replies to DNS queries. These rules keep no state.
// - Other protocols are dropped.
//
// Write `rules.rules` to change the IPv4 rules under traffic.

inside_frames :: FromDevice(0)
    -> from_inside :: Classifier(12/0806, 12/0800, 12/86dd, -);
outside_frames :: FromDevice(1)
    -> from_outside :: Classifier(12/0806, 12/0800, 12/86dd, -);

to_outside :: Queue(2048) -> ToDevice(1);
to_inside :: Queue(2048) -> ToDevice(0);

// ARP.
from_inside [0] -> to_outside;
from_outside [0] -> to_inside;
from_inside [3] -> Discard;
from_outside [3] -> Discard;

// Connections are tracked without a change to the packets. Input 0: from inside. Input 1: from outside, only packets of
// known connections. Input 2: from outside, allowed to open a connection.
connections :: IPRewriter(keep 0 1, drop, keep 1 0);
pings :: ICMPPingRewriter(keep 0 1, drop);
connections [0] -> outwards :: Unstrip(14) -> to_outside;
connections [1] -> inwards :: Unstrip(14) -> to_inside;
pings [0] -> outwards;
pings [1] -> inwards;

// IPv4 from inside: everything that can be tracked, and ICMP errors.
from_inside [1] -> Strip(14)
    -> CheckIPHeader
    -> out_kind :: IPClassifier(ip frag, tcp or udp, icmp type echo, icmp type unreachable or icmp type timeexceeded, -);
out_kind [0] -> fragments :: Counter -> Discard;
out_kind [1] -> connections;
out_kind [2] -> pings;
out_kind [3] -> outwards;
out_kind [4] -> Discard;

// IPv4 from outside.
from_outside [1] -> Strip(14)
    -> CheckIPHeader
    -> in_kind :: IPClassifier(ip frag, tcp or udp, icmp type echo-reply, icmp type unreachable or icmp type timeexceeded, -);
in_kind [0] -> fragments;
in_kind [2] -> [1] pings;
in_kind [3] -> inwards;
in_kind [4] -> denied :: Counter -> Discard;

// Connections that hosts outside may open: `allow` and an expression. The last rule is for all others.
in_kind [1] -> rules :: IPFilter(
    allow tcp dst port 22,
    allow tcp dst port 443,
    1 all);
rules [0] -> [2] connections;
rules [1] -> [1] connections;

// IPv6 from inside.
from_inside [2] -> to_outside;

// IPv6 from outside: ICMPv6, TCP with the ACK flag, UDP from port 53.
from_outside [2] -> in_kind6 :: Classifier(20/3a, 20/06 67/10%10, 20/11 54/0035, -);
in_kind6 [0] -> to_inside;
in_kind6 [1] -> to_inside;
in_kind6 [2] -> to_inside;
in_kind6 [3] -> denied;
