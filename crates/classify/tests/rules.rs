//! Compares compiled rule sets, in both forms, with direct evaluation of their expressions, on random rules and hostile
//! packets.

use classify::{
    Columns, DROP, Decision, Headers, Layout, NoNames, Program, RULE_MEMORY, Rule, Strategy,
    classifier_rules, filter_rules, first_match, pattern_rules,
};
use random::Random;

/// Makes random rules and packets.
struct Generator(Random);

impl Generator {
    fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next()
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0.below_u64(limit)
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u64) as usize]
    }

    /// An address from a small pool, so that rules match packets.
    fn address(&mut self) -> String {
        format!("10.{}.{}.{}", self.below(3), self.below(4), self.below(5))
    }

    fn port(&mut self) -> u64 {
        match self.below(3) {
            0 => self.below(8),
            1 => 1020 + self.below(8),
            _ => self.below(65536),
        }
    }

    fn primitive(&mut self) -> String {
        let direction = self.pick(&["", "src ", "dst ", "src or dst ", "src and dst "]);
        let relation = self.pick(&["", "= ", "!= ", "> ", "< ", ">= ", "<= "]);
        let equality = self.pick(&["", "", "== ", "!= "]);
        match self.below(18) {
            0 | 1 => format!("{direction}host {equality}{}", self.address()),
            2 => format!("{direction}net {}/{}", self.address(), self.below(33)),
            3 => format!("{direction}net {} mask 255.0.{}.255", self.address(), self.below(256)),
            4..=6 => {
                let protocol = self.pick(&["", "tcp ", "udp "]);
                format!("{direction}{protocol}port {relation}{}", self.port())
            }
            7 => format!("{direction}port & {} {relation}{}", 1 + self.below(65535), self.below(300)),
            8 => self.pick(&["tcp", "udp", "icmp", "ip proto 47", "proto != 6"]).to_string(),
            9 => self.pick(&["syn", "ack", "fin ack", "tcp opt rst", "not syn"]).to_string(),
            10 => self.pick(&["ip frag", "ip unfrag", "ip ect", "ip ce", "true", "false"]).to_string(),
            11 => format!("icmp type {relation}{}", self.below(12)),
            12 => format!("ip ttl {relation}{}", self.below(256)),
            13 => format!("ip tos & {} {relation}{}", 1 + self.below(255), self.below(256)),
            14 => format!(
                "ip[{}:2] & {} {relation}{}",
                2 * self.below(12),
                1 + self.below(65535),
                self.below(65536)
            ),
            15 => {
                format!(
                    "transp[{}:4] & {} {equality}{}",
                    4 * self.below(4),
                    1 + self.below(1 << 32),
                    self.below(256)
                )
            }
            16 => format!("tcp[{}] & {} {relation}{}", self.below(20), 1 + self.below(255), self.below(256)),
            _ => format!("ip len {relation}{}", self.below(100)),
        }
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.primitive();
        }
        let depth = depth - 1;
        match self.below(7) {
            0 => format!("({}) or ({})", self.expression(depth), self.expression(depth)),
            1 | 2 => format!("({}) and ({})", self.expression(depth), self.expression(depth)),
            3 => format!("not ({})", self.expression(depth)),
            4 => format!(
                "(({}) ? ({}) : ({}))",
                self.expression(depth),
                self.expression(depth),
                self.expression(depth)
            ),
            _ => self.expression(depth),
        }
    }

    /// The bytes from the network header on, and the header's length.
    fn packet(&mut self) -> (Vec<u8>, usize) {
        let mut bytes: Vec<u8> = (0..64).map(|_| self.next() as u8).collect();
        let words = if self.below(4) == 0 { 5 + self.below(4) } else { 5 };
        bytes[0] = 0x40 | words as u8;
        bytes[9] = [6, 17, 1, 47, 6, 17][self.below(6) as usize];
        if self.below(4) > 0 {
            bytes[6] = 0;
            bytes[7] = 0;
        }
        for at in [12, 16] {
            bytes[at] = 10;
            bytes[at + 1] = self.below(3) as u8;
            bytes[at + 2] = self.below(4) as u8;
            bytes[at + 3] = self.below(5) as u8;
        }
        let header = words as usize * 4;
        for at in [header, header + 2] {
            let port = self.port() as u16;
            bytes[at..at + 2].copy_from_slice(&port.to_be_bytes());
        }
        match self.below(5) {
            0 => bytes.truncate(self.below(64) as usize),
            1 => bytes.truncate(header + self.below(15) as usize),
            _ => {}
        }
        (bytes, header)
    }
}

fn parse(texts: &[String]) -> Vec<Rule> {
    let (rules, problems) = filter_rules(texts, 4, &NoNames);
    let errors: Vec<_> = problems.iter().filter(|problem| !problem.is_warning()).collect();
    assert!(errors.is_empty(), "{errors:?} in {texts:#?}");
    rules
}

/// Compares the program's decisions with the first matching rules, packet by packet and in batches of several sizes.
#[track_caller]
fn check_decisions(program: &Program, packets: &[Headers], note: &dyn std::fmt::Debug) {
    let output = |rule: usize| program.rules()[rule].output;
    let expected: Vec<u32> = packets
        .iter()
        .map(|headers| first_match(program.rules(), headers).and_then(output).unwrap_or(DROP))
        .collect();
    let mut columns = Columns::default();
    for size in [1, 7, 18, 256] {
        for (packets, expected) in packets.chunks(size).zip(expected.chunks(size)) {
            let found = match program.decide(&mut columns, packets, |headers| *headers) {
                Decision::All(output) => vec![output; packets.len()],
                Decision::Each(outputs) => outputs.to_vec(),
            };
            assert_eq!(found, expected, "{packets:02x?} {note:#?}");
        }
    }
}

/// Compiles the rules in steps, as a router does between batches.
fn compile_in_steps(rules: Vec<Rule>, budget: usize) -> Program {
    let unreachable = Program::with_budget(rules.clone(), Layout::Ip, budget).unreachable();
    let mut steps = Program::in_steps(rules, Layout::Ip, budget, true);
    let (program, found) = std::iter::repeat_with(|| steps.step()).flatten().next().expect("a program");
    assert_eq!(found, unreachable);
    program
}

/// Compiles the rules and compares every packet's decision with the reference, in both forms.
fn check(texts: &[String], random: &mut Generator, packets: usize) {
    let rules = parse(texts);
    let program = Program::new(rules.clone(), Layout::Ip);
    let compact = Program::with_budget(rules.clone(), Layout::Ip, 0);
    let stepped = compile_in_steps(rules.clone(), RULE_MEMORY);
    assert!(!compact.form().contains("tables"), "{}", compact.form());
    assert_eq!(stepped.text(), program.text());
    let mut reached = vec![false; rules.len()];
    let packets: Vec<_> = (0..packets).map(|_| random.packet()).collect();
    let packets: Vec<_> = packets.iter().map(|(bytes, header)| Headers::new(bytes, *header)).collect();
    for program in [&program, &compact, &stepped] {
        check_decisions(program, &packets, &texts);
    }
    for headers in &packets {
        let expected = first_match(&rules, headers);
        assert_eq!(compact.first_match(headers), expected, "{headers:02x?} {texts:#?}");
        assert_eq!(program.first_match(headers), expected, "{headers:02x?} {texts:#?}");
        if let Some(rule) = expected {
            reached[rule] = true;
        }
    }
    for (rule, why) in program.unreachable() {
        assert!(!reached[rule], "rule {rule} is {why:?} but a packet met it: {texts:#?}");
    }
}

#[test]
fn random_expressions_agree() {
    let mut random = Generator::new(0x1234_5678_9abc_def1);
    for round in 0..600 {
        let count = 1 + random.below(6);
        let texts: Vec<String> = (0..count)
            .map(|_| format!("{} {}", random.pick(&["0", "1", "deny", "3"]), random.expression(round % 4)))
            .collect();
        check(&texts, &mut random, 150);
    }
}

#[test]
fn large_rule_sets_agree() {
    let mut random = Generator::new(0xfeed_beef_0123_4567);
    for size in [50, 300, 1000] {
        let mut texts: Vec<String> = (0..size)
            .map(|_| {
                let parts: Vec<String> = (0..1 + random.below(4)).map(|_| random.primitive()).collect();
                format!("deny {}", parts.join(" and "))
            })
            .filter(|text| !matches!(text.as_str(), "deny true" | "deny ip unfrag"))
            .collect();
        texts.push("allow all".into());
        check(&texts, &mut random, 1500);
    }
}

#[test]
fn firewall_of_thousands_of_rules_agrees() {
    let mut random = Generator::new(0xabcd_ef01_2345_6789);
    let mut texts: Vec<String> = (0..2500)
        .map(|_| {
            let source = format!("src {}", random.address());
            let port = format!("{} dst port {}", random.pick(&["tcp", "udp"]), random.port());
            match random.below(3) {
                0 => format!("deny {source} and {port}"),
                1 => format!("deny {source} and dst {}", random.address()),
                _ => format!("deny {port} and src port > {}", random.port() % 65535),
            }
        })
        .collect();
    texts.push("allow all".into());
    check(&texts, &mut random, 1500);
}

#[test]
fn every_length_of_every_prefix_is_handled() {
    let texts: Vec<String> = [
        "0 not transp[1] & 128 == 0",
        "1 transp[1] & 128 != 0",
        "2 src port > 100",
        "3 not dst port <= 300",
        "deny src != 10.0.0.1",
        "0 ip[19] & 128 == 0",
        "1 ip frag or not ip ttl 3",
        "2 transp[1] & 128 == 0 or transp[1] & 128 == 128",
        "3 ip[19] & 1 == 0 or ip[19] & 1 == 1",
        "1 src port > 100 or src port <= 100",
    ]
    .map(String::from)
    .into();
    let rules = parse(&texts);
    let mut random = Generator::new(77);
    for first in 0..rules.len() {
        let rules = rules[first..].to_vec();
        let program = Program::new(rules.clone(), Layout::Ip);
        let compact = Program::with_budget(rules.clone(), Layout::Ip, 0);
        for _ in 0..200 {
            let (bytes, header) = random.packet();
            let packets: Vec<_> =
                (0..=bytes.len()).map(|length| Headers::new(&bytes[..length], header)).collect();
            check_decisions(&program, &packets, &texts[first]);
            check_decisions(&compact, &packets, &texts[first]);
            for headers in packets {
                let expected = first_match(&rules, &headers);
                assert_eq!(program.first_match(&headers), expected, "{headers:02x?}");
            }
        }
    }
}

/// Follows the steps of a program's text. Returns the output, or `None` for a drop.
fn follow(text: &str, headers: &Headers) -> Option<u32> {
    let steps: Vec<&str> =
        text.lines().map(|line| line.trim_start().split_once(' ').expect("a number").1).collect();
    let number = |text: &str| u32::from_str_radix(text, 16).expect("hexadecimal");
    let mut at = 0;
    loop {
        let (comparison, target) = steps[at].split_once("-> ").expect("an arrow");
        let words: Vec<&str> = comparison.split_whitespace().collect();
        let passes = match words.as_slice() {
            [] => true,
            [word, "&", mask, relation, value] => {
                let (header, offset) = word.split_once('+').expect("an offset");
                let bytes = match header {
                    "link" => headers.link,
                    "network" => headers.network,
                    "transport" => headers.transport,
                    _ => panic!("header {header}"),
                };
                let offset: usize = offset.parse().expect("an offset");
                let word = bytes[offset..].first_chunk().expect("a long packet");
                let bits = u32::from_be_bytes(*word) & number(mask);
                match (*relation, value.split_once("..")) {
                    ("=", None) => bits == number(value),
                    ("in", Some((low, high))) if number(low) <= number(high) => {
                        (number(low)..=number(high)).contains(&bits)
                    }
                    ("in", Some((low, high))) => bits >= number(low) || bits <= number(high),
                    _ => panic!("comparison {comparison}"),
                }
            }
            _ => panic!("comparison {comparison}"),
        };
        match target.strip_prefix("output ") {
            _ if !passes => at += 1,
            Some(output) => return output.parse().ok(),
            None if target == "drop" => return None,
            None => at = target.parse().expect("a step"),
        }
    }
}

#[test]
fn program_texts_agree_with_the_rules() {
    let mut random = Generator::new(0x0dd_ba11);
    let mut followed = 0;
    for round in 0..400 {
        let count = 1 + random.below(5);
        let texts: Vec<String> = (0..count)
            .map(|_| format!("{} {}", random.pick(&["0", "1", "deny", "3"]), random.expression(round % 4)))
            .collect();
        let rules = parse(&texts);
        let program = Program::new(rules.clone(), Layout::Ip);
        if program.summary().strategy != Strategy::Diagram {
            continue;
        }
        let text = program.text();
        for _ in 0..60 {
            let (bytes, header) = random.packet();
            // Packets that end before a compared word are decided by the rules themselves.
            if bytes.len() >= header + 40 {
                let headers = Headers::new(&bytes, header).with_link(&[0; 64]);
                let expected = first_match(&rules, &headers).and_then(|rule| rules[rule].output);
                assert_eq!(follow(&text, &headers), expected, "{bytes:02x?} {header} {texts:#?}\n{text}");
                followed += 1;
            }
        }
    }
    assert!(followed > 5_000, "{followed} packets were followed");
}

#[test]
fn texts_of_programs_name_fields_and_outputs() {
    let text = |texts: &[&str]| {
        let (rules, problems) = filter_rules(texts, 2, &NoNames);
        assert!(problems.is_empty(), "{problems:?}");
        Program::new(rules, Layout::Ip).text()
    };
    assert_eq!(text(&["allow all"]), "all -> output 0\n");
    assert_eq!(text(&["deny all"]), "all -> drop\n");
    assert_eq!(
        text(&["1 ip proto 6", "deny all"]),
        " 0 network+8 & 00ff0000 = 00060000 -> output 1\n 1 -> drop\n"
    );
    let hosts: Vec<String> =
        (0..200).map(|host| format!("1 src host 10.0.0.{host} && ip ttl {host}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).chain(["allow all"]).collect();
    assert_eq!(
        text(&hosts),
        "look up network+12, 4 bytes: 201 classes\nlook up network+8, 1 bytes: 201 classes\n\
         intersect 200 terms of 201 rules: 0 compared with their rule\notherwise -> output 0\n"
    );
}

fn summary(texts: &[&str]) -> classify::Summary {
    let (rules, problems) = classifier_rules(texts, &NoNames);
    assert!(problems.is_empty(), "{problems:?}");
    Program::new(rules, Layout::Ip).summary()
}

#[test]
fn patterns_of_bytes_agree_at_every_length() {
    let mut random = Generator::new(0x0bad_cafe);
    for round in 0..300 {
        let texts: Vec<String> = (0..1 + random.below(8))
            .map(|_| {
                let clause = |random: &mut Generator| {
                    let (offset, value) = (random.below(20), random.next() & 0x0101_0101_0101);
                    let digits = 2 * (1 + random.below(6)) as usize;
                    let no = random.pick(&["", "", "!"]);
                    let mask = ["", "%01010101010101"][random.below(2) as usize];
                    let mask = if mask.is_empty() { mask } else { &mask[..=digits] };
                    format!("{no}{offset}/{}{mask}", &format!("{value:012x}")[..digits])
                };
                (0..1 + random.below(3)).map(|_| clause(&mut random)).collect::<Vec<_>>().join(" ")
            })
            .chain([String::from("-")])
            .collect();
        let (rules, problems) = pattern_rules(&texts);
        assert!(problems.is_empty(), "{problems:?} in {texts:?}");
        let program = Program::new(rules.clone(), Layout::Bytes);
        let packets: Vec<Vec<u8>> = (0..60)
            .map(|_| {
                let length = random.below(30) as usize;
                let zeros = if round % 2 == 0 { 0x0101_0101 } else { 0xff };
                (0..length).map(|_| (random.next() & zeros) as u8).collect()
            })
            .collect();
        let packets: Vec<_> = packets.iter().map(|bytes| Headers::data(bytes)).collect();
        check_decisions(&program, &packets, &texts);
        check_decisions(&Program::with_budget(rules.clone(), Layout::Bytes, 0), &packets, &texts);
        for headers in packets {
            let expected = first_match(&rules, &headers);
            assert_eq!(program.first_match(&headers), expected, "{headers:02x?} {texts:?}");
        }
    }
}

#[test]
fn the_strategy_follows_the_size() {
    let of_patterns = |texts: &[&str]| {
        let (rules, problems) = pattern_rules(texts);
        assert!(problems.is_empty(), "{problems:?}");
        Program::new(rules, Layout::Bytes).summary().strategy
    };
    assert_eq!(of_patterns(&["-"]), Strategy::Constant);
    assert_eq!(of_patterns(&["12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"]), Strategy::Diagram);
    assert_eq!(of_patterns(&["42/474554202f6576696c", "-"]), Strategy::Diagram);
    let of_rules = |count: u64| {
        let mut random = Generator::new(1 + count);
        let mut rule = || {
            let (source, destination) = (random.address(), random.address());
            format!("deny src {source} and dst {destination} and src port > {}", random.below(65535))
        };
        let texts: Vec<String> = (0..count).map(|_| rule()).chain([String::from("allow all")]).collect();
        let strategy = |budget| Program::with_budget(parse(&texts), Layout::Ip, budget).summary().strategy;
        check(&texts, &mut random, 2000);
        [strategy(RULE_MEMORY), strategy(0)]
    };
    assert_eq!(of_rules(5), [Strategy::Diagram, Strategy::Diagram]);
    assert_eq!(of_rules(60), [Strategy::Tables, Strategy::Narrow]);
    assert_eq!(of_rules(300), [Strategy::Tables, Strategy::Wide]);
    assert_eq!(summary(&["tcp[4:4] > 77777", "tcp"]).strategy, Strategy::Narrow);
}

/// Random rules of a firewall: hosts, networks, protocols and ports.
fn firewall(count: usize, random: &mut Generator) -> Vec<String> {
    let mut texts: Vec<String> = (1..count)
        .map(|_| {
            let action = random.pick(&["allow", "deny", "1", "2"]);
            let (source, destination) = (random.address(), random.address());
            let port = format!("{} dst port {}", random.pick(&["tcp", "udp"]), random.port());
            match random.below(5) {
                0 => format!("{action} dst {destination} and {port}"),
                1 => format!("{action} src net {source}/{} and {port}", 8 + random.below(25)),
                2 => format!("{action} src {source} and dst net {destination}/{}", 16 + random.below(9)),
                3 => format!("{action} dst net {destination}/24 and dst port > {}", random.port()),
                _ => format!("{action} ip frag and src {source}"),
            }
        })
        .collect();
    texts.push("allow all".into());
    texts
}

#[test]
fn tables_decide_where_comparisons_are_many() {
    let mut random = Generator::new(0x51e95);
    let mut forms: Vec<String> = Vec::new();
    for count in [6, 12, 16, 20, 24, 28, 80] {
        let rule = |number| {
            let (net, port) = (format!("10.{}.{}.0/24", number % 3, number % 4), 80 + number % 5);
            format!("{} tcp and dst net {net} and dst port {port}", ["deny", "1"][number % 2])
        };
        let texts: Vec<String> = match count {
            80 => firewall(count, &mut random),
            _ => (0..count).map(rule).chain([String::from("allow all")]).collect(),
        };
        check(&texts, &mut random, 500);
        let form = Program::new(parse(&texts), Layout::Ip).form();
        forms.push(form.split(',').next().unwrap_or_default().into());
    }
    forms.dedup();
    let expected = ["fast form: comparisons", "fast form: comparisons and tables", "fast form: tables"];
    assert_eq!(forms, expected);
}

#[test]
fn the_budget_decides_the_form() {
    let mut random = Generator::new(0xb0d9e7);
    for count in [100, 1_000] {
        let texts = firewall(count, &mut random);
        check(&texts, &mut random, 1_000);
        let rules = parse(&texts);
        let program = |budget| Program::with_budget(rules.clone(), Layout::Ip, budget);
        let (largest, smallest) = (program(usize::MAX), program(0));
        assert!(largest.form().starts_with("fast form"), "{}", largest.form());
        assert!(smallest.form().starts_with("compact form"), "{}", smallest.form());
        let size = largest.summary().bytes;
        let mut seen = [false; 2];
        for budget in [0, size / 4, size / 2, size * 3 / 4, size, 2 * size] {
            let program = program(budget);
            let fast = program.form().starts_with("fast form");
            seen[usize::from(fast)] = true;
            let bytes = program.summary().bytes;
            assert!(!fast || bytes <= budget, "{count} rules: {bytes} bytes with a budget of {budget}");
            assert!(fast || bytes <= smallest.summary().bytes, "{count} rules");
        }
        assert_eq!(seen, [true, true], "{count} rules");
    }
}

#[test]
fn rules_break_into_few_terms() {
    assert_eq!(summary(&["all"]).strategy, Strategy::Constant);
    assert_eq!(summary(&["port 80 or 81 or 82 or 443"]).terms, 2);
    assert_eq!(summary(&["src port 80 or 81 or 82 or 443"]).terms, 1);
    assert_eq!(summary(&["not (src port 80 or 81 or 82 or 443)"]).terms, 3);
    assert_eq!(summary(&["host 1.2.3.4 or 1.2.3.5 or 10.0.0.0/8"]).terms, 2);
    assert_eq!(summary(&["tcp and not tcp", "syn and not (syn or ack)"]).terms, 0);
    let hosts: Vec<String> = (0..200).map(|i| format!("src host 10.1.{}.{}", i % 7, i)).collect();
    assert_eq!(summary(&[&hosts.join(" or ")]).terms, 1);
    assert_eq!(summary(&["tcp[4:4] > 77777"]).checked, 1);
}

#[test]
fn unreachable_rules_are_named() {
    use classify::Unreachable::{Contradiction, Shadowed};
    let texts = [
        "0 tcp",
        "1 tcp dst port 80",
        "0 src 10.0.0.0/8",
        "0 udp and src 10.1.0.0/16 or tcp syn",
        "0 udp and tcp",
        "0 udp src port 5",
        "deny all",
        "0 icmp",
    ]
    .map(String::from);
    let program = Program::new(parse(&texts), Layout::Ip);
    let expected = [(1, Shadowed(0)), (3, Shadowed(2)), (4, Contradiction), (7, Shadowed(6))];
    assert_eq!(program.unreachable(), expected);
}

#[test]
fn hostile_rule_sets_stay_small() {
    let mut random = Generator::new(99);
    // Exponentially many terms, hundreds of fields, scattered masks and overlapping ranges.
    let wide =
        (0..40).map(|i| format!("(ip[{i}] 1 or transp[{}] 2)", i % 30)).collect::<Vec<_>>().join(" and ");
    let fields = (0..300).map(|i| format!("ip[{i}] & 0x55 = 0x11")).collect::<Vec<_>>().join(" or ");
    let mut texts = vec![format!("deny {wide}"), format!("deny {fields}")];
    texts.extend(
        (0..2000).map(|i| format!("deny src port > {i} and dst port < {} and ip id > {i}", 65535 - i)),
    );
    let rules = parse(&texts);
    let program = Program::new(rules.clone(), Layout::Ip);
    assert!(program.summary().bytes < 64 << 20, "{:?}", program.summary());
    for _ in 0..300 {
        let (bytes, header) = random.packet();
        let headers = Headers::new(&bytes, header);
        assert_eq!(program.first_match(&headers), first_match(&rules, &headers));
    }
}

#[test]
fn any_text_is_read_without_a_panic() {
    let mut random = Generator::new(5);
    let words = [
        "allow",
        "deny",
        "0",
        "7",
        "src",
        "dst",
        "port",
        "host",
        "net",
        "tcp",
        "udp",
        "(",
        ")",
        "[",
        "]",
        "and",
        "or",
        "not",
        "!",
        "?",
        ":",
        ">",
        "<=",
        "!=",
        "&",
        "1.2.3.4",
        "10/8",
        "80",
        "0xffffffff",
        "-1",
        "syn",
        "ip",
        "ether",
        "1:2:3:4:5:6",
        "mask",
        "true",
        "type",
        "echo",
        "3:2",
        "ttl",
        "\u{e9}",
        "ect",
        "ce",
        "transp",
    ];
    for _ in 0..5000 {
        let count = random.below(12);
        let text: Vec<&str> = (0..count).map(|_| random.pick(&words)).collect();
        let (rules, _) = filter_rules(&[text.join(" ")], 2, &NoNames);
        let program = Program::new(rules.clone(), Layout::Ip);
        let (bytes, header) = random.packet();
        let headers = Headers::new(&bytes, header);
        assert_eq!(program.first_match(&headers), first_match(&rules, &headers), "{text:?}");
    }
    for (opening, count, first) in [
        ("(", 101, "expression nested too deeply"),
        ("not (", 101, "expression nested too deeply"),
        ("1 ? ", 101, "specify header field or ‘port’"),
        ("true ? true : ", 2, "expression nested too deeply"),
        ("! ", 1, "missing expression after ‘!’"),
    ] {
        let text = format!("allow {}", opening.repeat(50_000));
        let (rules, problems) = filter_rules(&[text], 1, &NoNames);
        let found = problems.first().map(ToString::to_string);
        assert_eq!((problems.len(), found), (count, Some(format!("pattern 0: {first}"))), "{opening}");
        let program = Program::new(rules.clone(), Layout::Ip);
        for _ in 0..10 {
            let (bytes, header) = random.packet();
            let headers = Headers::new(&bytes, header);
            assert_eq!(program.first_match(&headers), first_match(&rules, &headers), "{opening}");
        }
    }
}
