// Where diverted flows end: their packets are counted and discarded. To record them, capture at the port:
//
//     clickbox capture quarantine-1 --write diverted.pcap

FromDevice(0) -> got :: Counter -> Discard;
