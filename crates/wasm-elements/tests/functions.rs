//! Functions in WebAssembly: answers, changes of packets, limits, messages, replacement and hot swap. All counters are checked.

mod support;

use std::time::Duration;

use support::{check, configuration, module, process, simulation, wat};

/// Runs a module on ten packets, and checks handlers.
fn run(module: &[u8], arguments: &str, expected: &str) -> Vec<String> {
    let simulation = simulation(&[("f.wasm", module)]);
    let text = configuration(&format!("f.wasm, {arguments}"), 10);
    let done = simulation.run(&text).unwrap_or_else(|errors| panic!("{errors}"));
    check(|handler| done.read(handler), expected);
    done.log()
}

#[test]
fn answers_are_outputs_and_drops() {
    let none = "w.traps = 0\nw.out_of_fuel = 0\nw.out_of_memory = 0\nw.restarts = 0\nw.replaced = 0\nw.last_failure =";
    for (answer, a, b, losses) in [
        (0, 10, 0, ""),
        (1, 0, 10, ""),
        (2, 0, 0, "no_output 10"),
        (i32::MAX, 0, 0, "no_output 10"),
        (-1, 0, 0, "function_drop 10"),
    ] {
        let expected = format!("a.count = {a}\nb.count = {b}\nw.losses = {losses}\nw.calls = 10\n{none}");
        let expected = expected.replace("= \n", "=\n");
        run(&process(&format!("(i32.const {answer})")), "", &expected);
    }
}

#[test]
fn modules_count_drop_for_reasons_and_write_to_the_log() {
    // Drops every other packet for its own reason, and counts the others with their bytes.
    let text = r#"
        (global $odd (mut i32) (i32.const 0)) (global $counter (mut i32) (i32.const 0)) (global $n (mut i32) (i32.const 0))
        (func (export "start")
            (global.set $odd (call $reason (i32.const 8) (i32.const 14)))
            (global.set $counter (call $counter (i32.const 19) (i32.const 3)))
            (call $log (i32.const 8) (i32.const 4)))
        (func (export "process") (param i32) (result i32)
            (global.set $n (i32.add (global.get $n) (i32.const 1)))
            (if (i32.and (global.get $n) (i32.const 1)) (then (return (global.get $odd))))
            (call $count (global.get $counter) (i64.extend_i32_u (local.get 0)))
            (call $count (i32.const 77) (i64.const 1))
            (call $log (i32.const 19) (i32.const 3))
            (i32.const 0))"#;
    let expected = "a.count = 5\na.byte_count = 300\nb.count = 0\nw.losses = user:scrub/odd 5\nw.counters = odd 300\nw.traps = 0";
    let log = run(&module(text), "", expected);
    assert_eq!(log, ["w: user", "w: odd", "w: odd", "w: odd", "w: odd", "w: odd"]);
    let wrong = module(&text.replace("i32.const 14", "i32.const 4"));
    let errors = simulation(&[("f.wasm", &wrong)]).run(&configuration("f.wasm", 1)).err().expect("an error");
    assert!(errors.contains("\"user\" is no drop reason"), "{errors}");
}

#[test]
fn packets_are_changed_and_resized() {
    // The new length is 0, 64, 2048 or too long; the first byte becomes 7.
    for (length, bytes, answer) in [(0, 0, 0), (64, 640, 0), (2048, 20480, 0), (2049, 600, -1), (-1, 600, -1)]
    {
        let body = format!(
            "(i32.store8 (i32.const 1024) (i32.const 7))
             (if (i32.ne (call $resize (i32.const {length})) (i32.const {answer})) (then (unreachable)))
             (i32.const 0)"
        );
        run(
            &process(&body),
            "",
            &format!("a.count = 10\na.byte_count = {bytes}\nb.count = 0\nw.losses =\nw.traps = 0"),
        );
    }
    let simulation =
        simulation(&[("f.wasm", &process("(i32.store8 (i32.const 1024) (i32.const 7)) (i32.const 0)"))]);
    // A copy of the packet stays as it was.
    let text = "InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> StoreData(0, \\<05>) -> t :: Tee;
        t[0] -> w :: Wasm(f.wasm) -> c :: Classifier(0/07, -); t[1] -> d :: Classifier(0/05, -);
        c[0] -> c0 :: Counter -> Discard; c[1] -> c1 :: Counter -> Discard;
        d[0] -> d0 :: Counter -> Discard; d[1] -> d1 :: Counter -> Discard;";
    let done = simulation.run(text).unwrap_or_else(|errors| panic!("{errors}"));
    check(|handler| done.read(handler), "c0.count = 5\nc1.count = 0\nd0.count = 5\nd1.count = 0\nw.losses =");
    // Too long for the buffer.
    let text =
        "InfiniteSource(LENGTH 2049, LIMIT 5, STOP true) -> w :: Wasm(f.wasm) -> c :: Counter -> Discard;";
    let done = simulation.run(text).unwrap_or_else(|errors| panic!("{errors}"));
    check(|handler| done.read(handler), "c.count = 0\nw.losses = too_long 5\nw.calls = 0\nw.traps = 0");
}

/// A module that counts its packets in its memory, and fails at every fifth one.
fn failing(failure: &str) -> Vec<u8> {
    process(&format!(
        "(local $n i32)
         (local.set $n (i32.add (i32.load (i32.const 0)) (i32.const 1)))
         (i32.store (i32.const 0) (local.get $n))
         (if (i32.eq (local.get $n) (i32.const 5)) (then {failure}))
         (i32.const 0)"
    ))
}

#[test]
fn what_exceeds_a_limit_is_counted_and_begins_again() {
    let rows = [
        ("(loop $l (br $l))", "wasm_fuel", [2, 0, 0], "it executed more instructions than allowed"),
        (
            "(drop (memory.grow (i32.const 16)))",
            "wasm_memory",
            [0, 2, 0],
            "it asked for more memory than allowed",
        ),
        (
            "(drop (memory.grow (i32.const 65535)))",
            "wasm_memory",
            [0, 2, 0],
            "it asked for more memory than allowed",
        ),
        ("(unreachable)", "wasm_trap", [0, 0, 2], "wasm `unreachable` instruction executed"),
        ("(drop (i32.load (i32.const 65536)))", "wasm_trap", [0, 0, 2], "out of bounds memory access"),
        (
            "(call $log (i32.const 65530) (i32.const 100))",
            "wasm_trap",
            [0, 0, 2],
            "a text is not in the module's memory",
        ),
        ("(return (i32.const -2))", "wasm_trap", [0, 0, 2], "it answered -2, which means nothing"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "wasm_trap", [0, 0, 2], "integer divide by zero"),
    ];
    for (failure, reason, [fuel, memory, traps], text) in rows {
        // Without a new beginning, only one of ten would fail.
        run(
            &failing(failure),
            "",
            &format!(
                "a.count = 8\nb.count = 0\nw.losses = {reason} 2\nw.calls = 10\nw.out_of_fuel = {fuel}
                 w.out_of_memory = {memory}\nw.traps = {traps}\nw.restarts = 2\nw.replaced = 0\nw.last_failure = {text}"
            ),
        );
    }
    // Endless recursion.
    let recursion =
        module(r#"(func $f (export "process") (param i32) (result i32) (call $f (local.get 0)))"#);
    let expected =
        "a.count = 0\nw.losses = wasm_trap 10\nw.last_failure = call stack exhausted\nw.restarts = 10";
    run(&recursion, "", expected);
}

#[test]
fn fuel_and_memory_are_what_the_arguments_say() {
    // A loop of 1,000 rounds.
    let body = "(local $n i32)
        (loop $l (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 1000))))
        (i32.const 0)";
    let module = process(body);
    run(&module, "FUEL 500", "a.count = 0\nw.losses = wasm_fuel 10\nw.out_of_fuel = 10\nw.traps = 0");
    let simulation_of = |arguments: &str| {
        let text = configuration(&format!("f.wasm, {arguments}"), 10);
        simulation(&[("f.wasm", &module)]).run(&text)
    };
    let done = simulation_of("FUEL 20000").unwrap_or_else(|errors| panic!("{errors}"));
    check(
        |handler| done.read(handler),
        "a.count = 10\nw.losses =\nw.out_of_fuel = 0\nw.fuel = 20000\nw.memory = 65536",
    );
    let used: u64 = done.read("w.fuel_used").expect("a handler").parse().expect("a number");
    assert!((20_000..200_000).contains(&used), "{used}");
    for (arguments, text) in [
        ("FUEL 0", "FUEL must be between 1 and 1000000000"),
        ("START_FUEL 1000000001", "START_FUEL must be between 1 and 1000000000"),
        ("MEMORY 63", "MEMORY must be between 64 and 65536 KB"),
        ("MEMORY 65537", "MEMORY must be between 64 and 65536 KB"),
        ("FUEL x", "FUEL"),
    ] {
        let errors = simulation_of(arguments).err().expect("an error");
        assert!(errors.contains(text) && errors.starts_with("config:2:"), "{errors}");
    }
    // One page more than it has at the start.
    let growing = process("(drop (memory.grow (i32.const 1))) (i32.const 0)");
    run(&growing, "MEMORY 128", "a.count = 5\nw.losses = wasm_memory 5\nw.restarts = 5");
}

#[test]
fn modules_that_are_no_functions_are_refused() {
    let with = |fields: &str| {
        wat(&format!(
            r#"(module (memory (export "memory") 1) (func (export "buffer") (param i32) (result i32) (i32.const 0))
            (func (export "process") (param i32) (result i32) (i32.const 0)) {fields})"#
        ))
    };
    let good = with("");
    let mut nothing = Vec::from(b"\0asm\x01\0\0\0".as_slice());
    let mut large = good.clone();
    large.resize(2 << 20, 0);
    let many: String = (0..1_001).map(|number| format!("(export \"e{number}\" (memory 0))")).collect();
    let functions = "(func)".repeat(10_001);
    let start = "(func $f (loop $l (br $l))) (start $f)";
    let rows: &[(Vec<u8>, &str)] = &[
        (Vec::new(), "it does not begin with `\\0asm`"),
        (b"#!/bin/sh".to_vec(), "it does not begin with `\\0asm`"),
        (good[..good.len() - 3].to_vec(), "the module is invalid"),
        (
            {
                nothing.push(200);
                nothing.clone()
            },
            "the module is invalid",
        ),
        (large, "the module has more than 1048576 bytes"),
        (b"\0asm\x01\0\0\0".to_vec(), "does not export its memory"),
        (wat(r#"(module (memory (export "memory") 1))"#), "does not export the function `buffer`"),
        (
            wat(
                r#"(module (memory (export "memory") 1) (func (export "buffer") (param i32) (result i32) (i32.const 0))
                (func (export "process") (result i64) (i64.const 0)))"#,
            ),
            "`process` is not a function (i32) -> (i32)",
        ),
        (with(r#"(func (export "start") (param i32))"#), "`start` is not a function () -> ()"),
        (
            wat(r#"(module (import "env" "read" (func)))"#),
            "imports \"read\" from \"env\", and only functions of \"clickbox\" exist here",
        ),
        (
            wat(r#"(module (import "clickbox" "open" (func)) (memory (export "memory") 1)
                (func (export "buffer") (param i32) (result i32) (i32.const 0))
                (func (export "process") (param i32) (result i32) (i32.const 0)))"#),
            "open",
        ),
        (
            wat(r#"(module (import "clickbox" "memory" (memory 1)) (export "memory" (memory 0))
                (func (export "buffer") (param i32) (result i32) (i32.const 0))
                (func (export "process") (param i32) (result i32) (i32.const 0)))"#),
            "memory",
        ),
        (with(&many), "more than 1000 imports or exports"),
        (with(&functions), "exceeds the limit of 10000 functions"),
        (with(start), "the module does not start: it executed more instructions than allowed"),
        (with("(func $f unreachable) (start $f)"), "the module does not start: wasm `unreachable`"),
        (with(r#"(func (export "start") (loop $l (br $l)))"#), "it executed more instructions than allowed"),
        (
            with(r#"(func (export "start") (drop (memory.grow (i32.const 100))))"#),
            "asked for more memory than allowed",
        ),
        (with("(table 10001 funcref)"), "asked for more memory than allowed"),
        (
            wat(
                r#"(module (memory (export "memory") 65536) (func (export "buffer") (param i32) (result i32) (i32.const 0))
                (func (export "process") (param i32) (result i32) (i32.const 0)))"#,
            ),
            "asked for more memory than allowed",
        ),
        (
            wat(
                r#"(module (memory (export "memory") 1) (func (export "buffer") (param i32) (result i32) (i32.const 65000))
                (func (export "process") (param i32) (result i32) (i32.const 0)))"#,
            ),
            "`buffer` returned 65000, where the memory has no 2048 bytes",
        ),
        (
            wat(
                r#"(module (memory (export "memory") 1) (func (export "buffer") (param i32) (result i32) (i32.const -1))
                (func (export "process") (param i32) (result i32) (i32.const 0)))"#,
            ),
            "`buffer` returned 4294967295",
        ),
    ];
    for (bytes, text) in rows {
        let simulation = simulation(&[("f.wasm", bytes)]);
        let errors = simulation.run(&configuration("f.wasm", 1)).err().expect(text);
        // The place of the element, the file, and what is wrong.
        assert!(
            errors.contains(text) && errors.contains("f.wasm: ") && errors.starts_with("config:2:"),
            "{text}: {errors}"
        );
    }
    let errors = simulation(&[]).run(&configuration("f.wasm", 1)).err().expect("no file");
    assert!(errors.contains("f.wasm: No such file"), "{errors}");
}

#[test]
fn messages_reach_a_module() {
    // Takes `odd` only: the length of the message is 3.
    let text = r#"
        (global $answer (mut i32) (i32.const 0))
        (func (export "message") (param i32) (result i32)
            (if (i32.eq (local.get 0) (i32.const 9)) (then (unreachable)))
            (global.set $answer (i32.const 1))
            (i32.ne (local.get 0) (i32.const 3)))
        (func (export "process") (param i32) (result i32) (global.get $answer))"#;
    let simulation = simulation(&[("f.wasm", &module(text)), ("g.wasm", &process("(i32.const 0)"))]);
    let mut run = simulation.start(&configuration("f.wasm", 100)).unwrap_or_else(|errors| panic!("{errors}"));
    run.run_for(Duration::from_millis(20));
    run.write("w.message", "odd").expect("it takes the message");
    assert!(run.write("w.message", "even").is_err_and(|error| error.contains("refused the message")));
    run.run_for(Duration::from_millis(20));
    assert!(
        run.write("w.message", "123456789")
            .is_err_and(|error| error.contains("the module failed: wasm `unreachable`"))
    );
    let long = "x".repeat(2049);
    assert!(run.write("w.message", &long).is_err_and(|error| error.contains("at most 2048 bytes")));
    let done = run.finish();
    let sum = ["a.count", "b.count"].map(|name| done.read(name).unwrap().parse::<u32>().unwrap());
    // It has forgotten the message when it began again.
    assert!(sum[0] + sum[1] == 100 && (15..25).contains(&sum[1]), "{sum:?}");
    check(|handler| done.read(handler), "w.calls = 100\nw.losses =\nw.traps = 1\nw.restarts = 1");
    let mut run = simulation.start(&configuration("g.wasm", 1)).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(run.write("w.message", "odd").is_err_and(|error| error.contains("takes no messages")));
}

/// Base64, as a user has it from `base64`.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes
        .chunks(3)
        .map(|chunk| {
            let bits =
                chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            let digit = |index: usize| match index <= chunk.len() {
                true => DIGITS[(bits >> (18 - 6 * index)) as usize & 63] as char,
                false => '=',
            };
            (0..4).map(digit).collect::<String>()
        })
        .collect()
}

/// A module that counts its packets under this name, and answers this.
fn counting(answer: i32) -> Vec<u8> {
    module(&format!(
        r#"(global $counter (mut i32) (i32.const 0))
        (func (export "start") (global.set $counter (call $counter (i32.const 19) (i32.const 3))))
        (func (export "process") (param i32) (result i32)
            (call $count (global.get $counter) (i64.const 1)) (i32.const {answer}))"#
    ))
}

#[test]
fn a_module_is_replaced_under_traffic() {
    let (first, second, bad) = (counting(0), counting(1), process("(unreachable)"));
    let start = module(
        r#"(func (export "start") (unreachable)) (func (export "process") (param i32) (result i32) (i32.const 0))"#,
    );
    let simulation = simulation(&[("f.wasm", &first), ("g.wasm", &second), ("h.wasm", &start)]);
    let mut run = simulation.start(&configuration("f.wasm", 100)).unwrap_or_else(|errors| panic!("{errors}"));
    let part = Duration::from_millis(20);
    run.run_for(part);
    // The old module goes on if the new one is no module, or does not start.
    for (handler, value, text) in [
        ("w.file", "nothing.wasm", "nothing.wasm: No such file"),
        ("w.file", "h.wasm", "the module does not start: wasm `unreachable`"),
        ("w.module", "x!", "must be in base64"),
        ("w.module", "AAAA", "it does not begin with"),
        ("w.module", &base64(&start), "the module does not start"),
    ] {
        let error = run.write(handler, value).expect_err(text);
        assert!(error.contains(text), "{error}");
    }
    check(|handler| run.read(handler), "w.file = f.wasm\nw.replaced = 0\nb.count = 0\nw.losses =");
    run.run_for(part);
    run.write("w.file", "g.wasm").expect("the module is replaced");
    check(|handler| run.read(handler), "w.file = g.wasm\nw.config = g.wasm\nw.replaced = 1");
    run.run_for(part);
    // The counter of this name has gone on.
    assert_eq!(run.read("w.counters").unwrap(), format!("odd {}", run.read("w.calls").unwrap()));
    let before: u32 = run.read("a.count").unwrap().parse().unwrap();
    run.write("w.module", &base64(&bad)).expect("the module is replaced");
    run.run_for(part);
    run.write("w.module", &base64(&first)).expect("the module is replaced");
    check(|handler| run.read(handler), "w.file =\nw.replaced = 3");
    let done = run.finish();
    let number = |name: &str| done.read(name).unwrap().parse::<u32>().unwrap();
    let lost =
        done.read("w.losses").unwrap().strip_prefix("wasm_trap ").expect("losses").parse::<u32>().unwrap();
    let (a, b) = (number("a.count"), number("b.count"));
    assert_eq!((a + b + lost, number("w.calls")), (100, 100), "{a} {b} {lost}");
    assert!(a > 50 && (15..25).contains(&b) && (15..25).contains(&lost), "{a} {b} {lost}");
    // It has no counter to go on with after the module that had none.
    let counted: u32 = done.read("w.counters").unwrap().strip_prefix("odd ").unwrap().parse().unwrap();
    assert_eq!(counted, a - before, "{a}");
}

#[test]
fn a_hot_swap_keeps_the_memory_of_the_same_module() {
    let memory = process(
        "(i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
         (i32.gt_u (i32.load (i32.const 0)) (i32.const 50))",
    );
    let other = counting(0);
    let simulation = simulation(&[("f.wasm", &memory), ("copy.wasm", &memory), ("g.wasm", &other)]);
    for (next, b) in [("copy.wasm, FUEL 1000, MEMORY 64", true), ("g.wasm", false)] {
        let mut run =
            simulation.start(&configuration("f.wasm", 100)).unwrap_or_else(|errors| panic!("{errors}"));
        run.run_for(Duration::from_millis(40));
        let before: u64 = run.read("w.fuel_used").unwrap().parse().unwrap();
        assert!(run.write("hotconfig", &configuration("nothing.wasm", 100)).is_err());
        run.write("hotconfig", &configuration(next, 100)).expect("the configuration is accepted");
        assert!(run.read("w.fuel_used").unwrap().parse::<u64>().unwrap() >= before);
        let done = run.finish();
        let number = |name: &str| done.read(name).unwrap().parse::<u32>().unwrap();
        let calls = number("w.calls");
        assert_eq!((number("a.count") + number("b.count"), calls > 100), (calls, true));
        assert_eq!(number("b.count"), if b { calls - 50 } else { 0 }, "{next}");
        check(|handler| done.read(handler), "w.losses =\nw.traps = 0\nw.restarts = 0");
    }
}

/// What a module keeps is unknown: an instance of a service that is drained keeps its flows.
#[test]
fn a_module_that_was_called_keeps_its_flows() {
    let module = process("(i32.const 0)");
    let simulation = simulation(&[("f.wasm", &module)]);
    let start = || simulation.start(&configuration("f.wasm", 10)).unwrap();
    let (mut used, mut other) = (start(), start());
    assert_eq!(used.hand_over(&mut other), Ok(0));
    used.run_for(Duration::from_secs(1));
    assert_eq!(used.read("w.calls").unwrap(), "10");
    assert_eq!(used.hand_over(&mut other), Err("can't hand over the state of flows: w".into()));
    assert_eq!(other.read("w.calls").unwrap(), "0");
}
