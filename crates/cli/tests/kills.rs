//! Daemon, launcher and fabric are killed at random moments: each operation is whole or absent, and what was acknowledged
//! stays.
//!
//! `CLICKBOX_TEST_KILLS` is the number of rounds, 50 by default. `CLICKBOX_TEST_SEED` repeats a run.

use std::process::Command;
use std::time::SystemTime;

#[test]
fn what_was_acknowledged_survives_kills_and_the_rest_is_whole_or_absent() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let rounds = number("CLICKBOX_TEST_KILLS").unwrap_or(50);
    let clock = || SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970").as_nanos() as u64;
    let seed = number("CLICKBOX_TEST_SEED").unwrap_or_else(clock);
    println!("seed {seed}: repeat with CLICKBOX_TEST_SEED={seed}");
    let output = Command::new(env!("CARGO_BIN_EXE_clickbox"))
        .args(["bench", "kills", "--json", "--count", &rounds.to_string(), "--seed", &seed.to_string()])
        .output()
        .expect("the program runs");
    let [text, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{errors}");
    println!("{text}");
    let done: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(done["rounds"], rounds);
    let figures = ["daemons", "launchers", "fabrics", "migrations", "acknowledged", "interrupted"];
    for figure in figures.iter().filter(|_| rounds >= 50) {
        assert!(done[figure].as_u64().is_some_and(|count| count > 0), "{figure}: {text}");
    }
}
