// A carrier-grade NAT for a box with two ports: hosts of 10.0.0.0/24 share one public address.
//
// What leaves gets the address and a port of it, pings an identifier of it. What enters was captured behind the gateway
// and passes as it is, as does IPv6, which has addresses enough.

define($PUBLIC 198.51.100.1);

FromDevice(0)
    -> kind :: Classifier(12/0800, -);
kind [0] -> Strip(14)
    -> CheckIPHeader
    -> way :: IPClassifier(src net 10.0.0.0/24 and (tcp or udp), src net 10.0.0.0/24 and icmp type echo, -);

way [0] -> nat :: IPRewriter(pattern $PUBLIC 1024-65535 - - 0 0) -> back :: Unstrip(14);
way [1] -> ping_nat :: ICMPPingRewriter(pattern $PUBLIC - - - 0 0) -> back;
way [2] -> back;

back -> out :: Counter;
kind [1] -> out;
out -> queue :: Queue(2048) -> ToDevice(1);
