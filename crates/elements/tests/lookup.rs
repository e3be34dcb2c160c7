//! Route tables: commands, answers, messages and the order of routes, which are Click's.

mod support;

use support::{BATCHES, expectations, run};

/// Runs `class(config)` with three outputs, then the commands (`read NAME PARAMETER`, `write NAME VALUE`), and
/// compares what they answer, line by line.
#[track_caller]
fn check(class: &str, config: &str, commands: &[&str], expected: &[&str]) {
    let text = format!("r :: {class}({config}); r[0] -> r; r[1] -> r; r[2] -> r");
    let mut run = run(&text, 7).expect("a sound configuration");
    let mut answers = Vec::new();
    for command in commands {
        let (call, rest) = command.split_once(' ').expect("a call");
        let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
        let path = format!("r.{name}");
        let answer = match call {
            "read" => run.router.read(&path, value),
            _ => run.router.write(&path, value).map(|()| String::new()),
        };
        let answer = answer.unwrap_or_else(|error| error.to_string());
        answers.extend(answer.lines().map(String::from));
    }
    assert_eq!(answers, expected, "{class}");
}

#[track_caller]
fn check_error(class: &str, config: &str, expected: &str) {
    let text = format!("r :: {class}({config}); r[0] -> r");
    let error = run(&text, 7).err().unwrap_or_default();
    assert_eq!(error, format!("test:1: While configuring ‘r :: {class}’:\n  {expected}"), "{config}");
}

const CHANGEABLE: [&str; 4] = ["RadixIPLookup", "DirectIPLookup", "RangeIPLookup", "LinearIPLookup"];

#[test]
fn the_longest_prefix_wins_while_routes_come_and_go() {
    for class in CHANGEABLE {
        check(
            class,
            "",
            &[
                "write add 18.26/16 1.0.0.1 0",
                "read lookup 18.26.4.9",
                "write add 18.26.0/18 2.0.0.2 1",
                "read lookup 18.26.4.9",
                "write add 18.26.0/17 3.0.0.3 2",
                "read lookup 18.26.4.9",
                "write remove 18.26.0/18 2.0.0.2 1",
                "read lookup 18.26.4.9",
                "write remove 18.26/16",
                "read lookup 18.26.4.9",
                "write add 18.26.0/12 - 0",
                "write remove 18.26.0/17 3.0.0.3 2",
                "read lookup 18.26.4.9",
                "write add 18.26.0/12 6.0.0.6 0",
                "write set 18.26.0/12 7.0.0.7 0",
                "read lookup 18.26.4.9",
                "write remove 18.26.0/12 7.0.0.7 0",
                "read lookup 18.26.4.9",
            ],
            &[
                "0 1.0.0.1",
                "1 2.0.0.2",
                "1 2.0.0.2",
                "2 3.0.0.3",
                "2 3.0.0.3",
                "0",
                "conflict with existing route ‘18.16.0.0/12 - 0’",
                "0 7.0.0.7",
                "-1",
            ],
        );
    }
}

#[test]
fn invalid_commands_are_rejected_with_a_reason() {
    for class in CHANGEABLE {
        check(
            class,
            "10/8 1, 0/0 2",
            &[
                "write add 10.3/16 5",
                "write add 10.3/16 -1",
                "write add 10.3/16",
                "write add 10.3/16 - 1 1",
                "write remove 11/8",
                "write remove 10/8 0",
                "write remove 10/8 1.1.1.1 1",
                "write remove 10/8 0 0",
                "write remove 10/8 7",
                "read lookup x",
                "write ctrl foo",
            ],
            &[
                "bad OUTPUT",
                "bad OUTPUT",
                "expected ‘ADDR/MASK [GATEWAY] OUTPUT’",
                "expected ‘ADDR/MASK [GATEWAY] OUTPUT’",
                "route ‘11.0.0.0/8 - -1’ not found",
                "route ‘10.0.0.0/8 - 0’ not found",
                "route ‘10.0.0.0/8 1.1.1.1 1’ not found",
                "expected ‘ADDR/MASK [GATEWAY OUTPUT]’",
                "bad OUTPUT",
                "expected IP address",
                "bad command ‘foo’",
            ],
        );
    }
}

#[test]
fn a_group_of_commands_is_applied_as_a_whole_or_not_at_all() {
    for class in CHANGEABLE {
        check(
            class,
            "10/8 1",
            &[
                "write ctrl add 11/8 1\n\nset 10/8 2.2.2.2 2\nadd 12/8 2\nremove 12/8",
                "read lookup 10.1.1.1",
                "write ctrl remove 11/8\nset 10/8 0\nadd 13/8 0\nadd 10/8 0",
                "read lookup 10.1.1.1",
                "read lookup 11.1.1.1",
                "read lookup 13.1.1.1",
            ],
            &["2 2.2.2.2", "conflict with existing route ‘10.0.0.0/8 - 0’", "2 2.2.2.2", "1", "-1"],
        );
    }
}

/// The table at first and after some changes.
#[track_caller]
fn check_table(class: &str, first: &[&str], changed: &[&str]) {
    check(
        class,
        "10/8 1, 10.1/16 1.2.3.4 0, 0/0 5.6.7.8 1, 10.1.2/24 0, 10.1.2.3 1, 10/8 0, 192.168.0.0/255.255.255.128 - 1",
        &[
            "read table",
            "write set 10.1.2/24 9.9.9.9 1",
            "write remove 10/8",
            "write add 11/8 1",
            "write add 12/8 0",
            "write set 11/8 0",
            "write add 13/8 1",
            "read table",
        ],
        &[first, changed].concat(),
    );
}

#[test]
fn tables_are_listed_in_the_order_of_click() {
    let given = [
        "10.0.0.0/8\t\t-\t\t1",
        "10.1.0.0/16\t\t1.2.3.4\t\t0",
        "0.0.0.0/0\t\t5.6.7.8\t\t1",
        "10.1.2.0/24\t\t-\t\t0",
        "10.1.2.3/32\t\t-\t\t1",
        "192.168.0.0/25\t\t-\t\t1",
    ];
    let radix = [
        "13.0.0.0/8\t\t-\t\t1",
        "10.1.0.0/16\t\t1.2.3.4\t\t0",
        "0.0.0.0/0\t\t5.6.7.8\t\t1",
        "12.0.0.0/8\t\t-\t\t0",
        "10.1.2.3/32\t\t-\t\t1",
        "192.168.0.0/25\t\t-\t\t1",
        "10.1.2.0/24\t\t9.9.9.9\t\t1",
        "11.0.0.0/8\t\t-\t\t0",
    ];
    check_table("RadixIPLookup", &given, &radix);
    let linear = [
        "11.0.0.0/8\t\t-\t\t0",
        "10.1.0.0/16\t\t1.2.3.4\t\t0",
        "0.0.0.0/0\t\t5.6.7.8\t\t1",
        "10.1.2.0/24\t\t9.9.9.9\t\t1",
        "10.1.2.3/32\t\t-\t\t1",
        "192.168.0.0/25\t\t-\t\t1",
        "12.0.0.0/8\t\t-\t\t0",
        "13.0.0.0/8\t\t-\t\t1",
    ];
    check_table("LinearIPLookup", &given, &linear);
    let direct = [
        "0.0.0.0/0\t\t5.6.7.8\t\t1",
        "10.0.0.0/8\t\t-\t\t1",
        "10.1.0.0/16\t\t1.2.3.4\t\t0",
        "10.1.2.3/32\t\t-\t\t1",
        "192.168.0.0/25\t\t-\t\t1",
        "10.1.2.0/24\t\t-\t\t0",
    ];
    let changed = [
        "0.0.0.0/0\t\t5.6.7.8\t\t1",
        "11.0.0.0/8\t\t-\t\t0",
        "12.0.0.0/8\t\t-\t\t0",
        "13.0.0.0/8\t\t-\t\t1",
        "10.1.0.0/16\t\t1.2.3.4\t\t0",
        "10.1.2.3/32\t\t-\t\t1",
        "192.168.0.0/25\t\t-\t\t1",
        "10.1.2.0/24\t\t9.9.9.9\t\t1",
    ];
    check_table("DirectIPLookup", &direct, &changed);
    check_table("RangeIPLookup", &direct, &changed);
}

#[test]
fn a_static_table_is_read_only() {
    check(
        "StaticIPLookup",
        "10/8 1, 1.0.1.0/255.0.255.0 9.9.9.9 2",
        &["read table", "read lookup 1.7.1.7", "write add 11/8 1", "write flush"],
        &[
            "10.0.0.0/8\t\t-\t\t1",
            "1.0.1.0/255.0.255.0\t9.9.9.9\t\t2",
            "2 9.9.9.9",
            "no ‘r.add’ handler",
            "no ‘r.flush’ handler",
        ],
    );
}

#[test]
fn flushed_tables_are_empty() {
    for class in &CHANGEABLE[..3] {
        check(class, "0/0 1.1.1.1 1", &["write flush", "read table", "read lookup 1.2.3.4"], &["-1"]);
    }
}

#[test]
fn ip6_routes() {
    check(
        "LookupIP6Route",
        "2001:db8:a::/48 0, 2001:db8:a:1::/64 fe80::1 1, ::/0 fe80::2 2, 2001:db8:a:1::/64 fe80::3 2",
        &[
            "read table",
            "write add fd00::/8 0",
            "write add fd00::/8 fe80::4 1",
            "write ctrl add 2001:db8:b::7 1",
            "write remove ::/0",
            "write remove 2001:db8:ffff::/48",
            "write ctrl remove 2001:db8:a::/48",
            "write ctrl set fd00::/8 0",
            "write add fd01::/16",
            "write add fd01::/16 2 fe80::1 1",
            "write add fd01::/16 nowhere 1",
            "write add fd01 0",
            "write add fd01::/16 3",
            "write remove fd00::/8 1",
            "read table",
        ],
        &[
            "# Active routes",
            "2001:db8:a::/48\t::\t0",
            "2001:db8:a:1::/64\tfe80::3\t2",
            "::/0\tfe80::2\t2",
            "bad command, should be `add' or `remove'",
            "GATEWAY: required argument missing",
            "PORT: required argument missing",
            "GATEWAY: parse error",
            "PORT: invalid number",
            "too many arguments",
            "GATEWAY: parse error",
            "PREFIX: parse error",
            "output port out of range",
            "too many arguments",
            "# Active routes",
            "2001:db8:a:1::/64\tfe80::3\t2",
            "fd00::/8\tfe80::4\t1",
            "2001:db8:b::7/128\t::\t1",
        ],
    );
}

#[test]
fn bad_arguments_are_named() {
    for class in ["RadixIPLookup", "DirectIPLookup", "LinearIPLookup", "StaticIPLookup"] {
        check_error(class, "10/8 0, x 1", "argument 2 should be ‘ADDR/MASK [GATEWAY] OUTPUT’");
        check_error(class, "10/8 1", "argument 1 bad OUTPUT");
    }
    check_error("RadixIPLookup", "1.0.1.0/255.0.255.0 0", "argument 1: mask is not a prefix");
    check_error("LookupIPRouteMP", "10/8 - 0", "argument 1 should be `DADDR/MASK [GATEWAY] OUTPUT'");
    check_error("LookupIPRouteMP", "10/8 9", "need 10 or more output ports");
    check_error("LookupIP6Route", "::/0 - 0", "argument 1 should be DADDR/MASK [GW] OUTPUT");
    check_error("LookupIP6Route", "::/0 9", "need 10 or more output ports");
}

/// Sends 600 packets with the destinations 10.0.0.0, 11.0.0.0 and 0.0.0.0 in turn, and checks the counters and what
/// was logged.
#[track_caller]
fn check_packets(routes: &str, expect: &str, console: &str) {
    for batch in BATCHES {
        let config = format!(
            "InfiniteSource(LIMIT 600, STOP true) -> turn :: RoundRobinSwitch; r :: {routes};
            turn[0] -> SetAnnoByte(0, 10) -> r; turn[1] -> SetAnnoByte(0, 11) -> r; turn[2] -> r;
            r[0] -> next :: LinearIPLookup(10.0.0.0 0, 192.168.0.1 1, 0/0 2);
            r[1] -> others :: Counter -> Discard; next[0] -> own :: Counter -> Discard;
            next[1] -> redirected :: Counter -> Discard; next[2] -> kept :: Counter -> Discard"
        );
        let run = run(&config, batch).expect("a sound configuration");
        assert_eq!(expectations(&run, expect), [""; 0], "{routes}, batches of {batch}");
        assert_eq!(run.memory.console().trim_end(), console, "{routes}, batches of {batch}");
    }
}

#[test]
fn packets_follow_the_table() {
    let split = "own.count = 200\nredirected.count = 200\nkept.count = 0\nothers.count = 200";
    for class in CHANGEABLE.into_iter().chain(["StaticIPLookup", "LookupIPRouteMP"]) {
        check_packets(&format!("{class}(10/8 0, 11/8 192.168.0.1 0, 0/0 1)"), split, "");
        let whole = "own.count = 0\nredirected.count = 600\nkept.count = 0\nothers.count = 0";
        check_packets(&format!("{class}(0/0 192.168.0.1 0, 12/8 1)"), whole, "");
    }
}

#[test]
fn packets_without_a_route_are_counted_and_the_first_ones_logged() {
    let lost =
        "own.count = 200\nredirected.count = 0\nkept.count = 0\nothers.count = 0\nr.losses = no_route 400";
    for (class, name) in [("RadixIPLookup", "IPRouteTable"), ("LinearIPLookup", "LinearIPLookup")] {
        let logged = ["11.0.0.0", "0.0.0.0", "11.0.0.0", "0.0.0.0", "11.0.0.0"];
        let console = logged.map(|address| format!("{name}: no route for {address}")).join("\n");
        check_packets(&format!("{class}(10/8 0, 12/8 1)"), lost, &console);
    }
    check_packets("DirectIPLookup(10/8 0, 12/8 1)", lost, "");
    check_packets("RangeIPLookup(10/8 0, 12/8 1)", lost, "");
}

#[test]
fn ip6_packets_follow_the_table() {
    for batch in BATCHES {
        let config = "InfiniteSource(LIMIT 600, STOP true) -> turn :: RoundRobinSwitch;
            r :: LookupIP6Route(3f00::/8 ::5 0, 3f01::/16 1, 4000::/2 2);
            turn[0] -> SetAnnoByte(0, 0x3f) -> r; turn[1] -> SetAnnoByte(0, 0x41) -> r; turn[2] -> r;
            r[0] -> next :: LookupIP6Route(::5 0, ::/0 1); r[1] -> others :: Counter -> Discard;
            r[2] -> wide :: Counter -> Discard; next[0] -> redirected :: Counter -> Discard;
            next[1] -> kept :: Counter -> Discard";
        let run = run(config, batch).expect("a sound configuration");
        let expect = "redirected.count = 200\nkept.count = 0\nothers.count = 0\nwide.count = 200\nr.losses = no_route 200";
        assert_eq!(expectations(&run, expect), [""; 0], "batches of {batch}");
    }
}
