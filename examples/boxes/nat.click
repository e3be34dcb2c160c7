// A carrier-grade NAT for a box with two ports: hosts of 10.0.0.0/24 share one public address.
//
// Outgoing packets get the public address and one of its ports; pings get one of its identifiers. Incoming packets and
// IPv6 packets pass unchanged: the capture was taken behind the gateway, and IPv6 needs no NAT.

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
