// An intrusion detection system with one face. Packets pass until one of a flow begins with a known pattern. From then on,
// the function sends the whole flow to the service `quarantine`, without asking the controller of the switch.
//
// A pattern is OFFSET/BYTES; the bytes are `GET /evil`. The first offset is that of a UDP payload without IP options
// (14 + 20 + 8), the others those of a TCP payload without options and with the twelve bytes of timestamps.
//
// `suspects` changes nothing in a packet: it remembers flows. Packets at its input 0 begin a flow that is diverted. Packets
// at its input 1 are diverted if they belong to such a flow, in either direction, and pass if they do not.

suspects :: IPRewriter(keep 1 1, pass 0, CAPACITY 65536);

FromDevice(0) -> seen :: Counter -> patterns :: Classifier(
    12/0800 42/474554202f6576696c,
    12/0800 54/474554202f6576696c,
    12/0800 66/474554202f6576696c,
    12/0800,
    -);
patterns [0] -> alerts :: Counter
    -> Strip(14) -> CheckIPHeader -> alarming :: IPClassifier(tcp or udp, -);
patterns [1] -> alerts;
patterns [2] -> alerts;
patterns [3] -> Strip(14) -> CheckIPHeader -> unknown :: IPClassifier(tcp or udp, -);
alarming [0] -> [0] suspects;
unknown [0] -> [1] suspects;

// What passes goes where the switch sends the packets of this service next.
suspects [0] -> ethernet :: Unstrip(14) -> passed :: Counter -> next :: ToNext;
alarming [1] -> ethernet;
unknown [1] -> ethernet;
patterns [4] -> passed;
suspects [1] -> Unstrip(14) -> diverted :: Counter -> ToService(quarantine);
