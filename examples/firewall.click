// A stateless firewall with ten rules. The first rule that matches a packet decides.
//
// The rules use tcpdump's language: `src net`, `dst port`, `tcp opt syn`, `and`, `or`, `not`. They are compiled, so the
// time per packet grows slowly with their number: a thousand rules take about twice as long as ten.
//
// Parameters: FRAME is the start of each frame, repeated up to LENGTH bytes. LIMIT is the number of frames, BURST the
// number of frames per turn of the source.

define($FRAME \<020000000001 020000000002 0800  4500 0032 0001 0000 4011 acad 0a010203 c0000209  9c40 0035 001e 0000>,
        $LENGTH 64, $LIMIT 1000000, $BURST 32);

source :: InfiniteSource(DATA $FRAME, LENGTH $LENGTH, LIMIT $LIMIT, BURST $BURST, TIMESTAMP false, STOP true)
    -> Strip(14)
    -> CheckIPHeader
    // Allowed packets leave through output 0, denied ones through output 1.
    -> rules :: IPFilter(
        deny src net 127.0.0.0/8 or src net 224.0.0.0/4,
        deny src net 192.0.2.0/24,
        deny dst net 172.16.0.0/12,
        deny ip frag,
        deny tcp and dst port 23,
        deny tcp and dst port 445,
        allow tcp and dst host 192.0.2.9 and dst port 443,
        deny udp and dst port 137,
        allow udp and dst port 53,
        deny all)
    -> Unstrip(14)
    -> out :: Counter
    -> Discard;
rules [1] -> denied :: Counter -> Discard;
