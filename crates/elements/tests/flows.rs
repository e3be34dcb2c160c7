//! The file in which AggregateIPFlows records flows.

mod support;

use std::rc::Rc;

use support::{BATCHES, Memory, run_with};

/// What a configuration writes into the file `flows` when it is over, which must not depend on batches.
fn written(config: &str, files: &[(&str, &str)]) -> String {
    let all = BATCHES.map(|batch| {
        let memory = Rc::new(Memory::default());
        files.iter().for_each(|(name, text)| memory.put(name, text.as_bytes()));
        drop(run_with(config, batch, memory.clone()).expect("it runs"));
        String::from_utf8(memory.file("flows").expect("it writes")).expect("text")
    });
    assert!(all.iter().all(|text| *text == all[0]));
    all[0].clone()
}

#[test]
fn flows_are_recorded_when_they_end() {
    let trace = "!data timestamp ip_src sport ip_dst dport ip_proto tcp_flags\n\
        1.5 9.0.0.1 1000 5.0.0.5 53 U .\n\
        2 5.0.0.5 53 9.0.0.1 1000 U .\n\
        3 9.0.0.1 2000 5.0.0.5 80 T S\n\
        4 9.0.0.1 2000 5.0.0.5 80 T F\n\
        5 5.0.0.5 80 9.0.0.1 2000 T F\n\
        6.000000001 9.0.0.1 2000 5.0.0.5 80 T S\n\
        90 9.0.0.1 1000 5.0.0.5 53 U .\n";
    // The first TCP flow ends with the SYN of the next one, the first UDP flow is too old in the end.
    let expected = "<?xml version='1.0' standalone='yes'?>\n<trace file='a&apos;b'>\n\
        <flow aggregate='2' src='9.0.0.1' sport='2000' dst='5.0.0.5' dport='80' begin='3.000000' duration='2.000000'>\n  \
        <stream dir='0' packets='2' /><stream dir='1' packets='1' />\n</flow>\n\
        <flow aggregate='1' src='9.0.0.1' sport='1000' dst='5.0.0.5' dport='53' begin='1.500000' duration='0.500000'>\n  \
        <stream dir='0' packets='1' /><stream dir='1' packets='1' />\n</flow>\n\
        <flow aggregate='3' src='9.0.0.1' sport='2000' dst='5.0.0.5' dport='80' begin='6.000000001' \
        duration='0.000000'>\n  \
        <stream dir='0' packets='1' /><stream dir='1' packets='0' />\n</flow>\n\
        <flow aggregate='4' src='9.0.0.1' sport='1000' dst='5.0.0.5' dport='53' begin='90.000000' \
        duration='0.000000'>\n  \
        <stream dir='0' packets='1' /><stream dir='1' packets='0' />\n</flow>\n</trace>\n";
    let config = "d :: FromIPSummaryDump(\"a'b\", STOP true) -> AggregateIPFlows(TRACEINFO flows, SOURCE d) -> Discard;";
    assert_eq!(written(config, &[("a'b", trace)]), expected);
}

#[test]
fn positions_in_a_capture_are_recorded() {
    let text = written(
        "d :: FromDump(testdata/mix.pcap, STOP true, FORCE_IP true)
            -> f :: AggregateIPFlows(TRACEINFO flows, SOURCE d) -> Discard; f[1] -> Discard;
         DriverManager(wait, write f.clear, stop)",
        &[],
    );
    let number = |line: &str, name: &str| {
        let value = line.split(&format!(" {name}='")).nth(1).and_then(|rest| rest.split('\'').next());
        value.and_then(|value| value.parse::<u64>().ok())
    };
    let positions: Vec<u64> = text.lines().filter_map(|line| number(line, "filepos")).collect();
    // All flows end with the run, in the order of their numbers, which is that of their first packets.
    assert_eq!((positions.first(), positions.last(), positions.len()), (Some(&24), Some(&1_464_617), 232));
    assert!(
        positions.is_sorted()
            && text.starts_with("<?xml version='1.0' standalone='yes'?>\n<trace file='testdata/mix.pcap'>")
    );
    let packets: u64 = text
        .lines()
        .flat_map(|line| line.split("<stream").skip(1).filter_map(|stream| number(stream, "packets")))
        .sum();
    assert_eq!(packets, 2175);
}
