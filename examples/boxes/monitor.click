// A flow monitor for a box with two ports: counts packets per flow, and passes all packets on.
//
// Read `counts.nagg` for the number of flows.

FromDevice(0)
    -> kind :: Classifier(12/0800, -);
kind [0] -> Strip(14)
    -> CheckIPHeader
    -> flows :: AggregateIPFlows
    -> counts :: AggregateCounter
    -> way :: IPClassifier(dst net 10.0.0.0/24, -);
// Pings belong to no TCP or UDP flow.
flows [1] -> way;

way [0] -> to_hosts :: Counter -> back :: Unstrip(14);
way [1] -> to_uplink :: Counter -> back;
kind [1] -> by_ip6 :: Counter -> out :: Counter;
back -> out;
out -> queue :: Queue(2048) -> ToDevice(1);
