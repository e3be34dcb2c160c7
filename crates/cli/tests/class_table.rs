//! The configurations with which `clickbox bench engine --classes` measures classes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bench::TemporaryFolder;
use bench::engine::{
    ClickProgram, Comparison, FrameSize, Load, Traffic, Workbench, class_configurations, unmeasured_classes,
};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_clickbox");
const PACKETS: u64 = 1500;

#[test]
fn each_class_that_packets_enter_is_measured_or_has_a_reason() {
    let all: BTreeSet<_> =
        elements::REGISTRY.iter().copied().flatten().map(|class| class.info.name).collect();
    let is_entered = |class: &&str| !elements::class(class).expect(class).info.ports.starts_with("0/");
    let entered: BTreeSet<_> = all.iter().copied().filter(is_entered).collect();
    let measured: BTreeSet<_> = class_configurations().map(|found| found.class).collect();
    let unmeasured: BTreeSet<_> = unmeasured_classes().map(|(class, _)| class).collect();
    let listed: BTreeSet<_> = measured.union(&unmeasured).copied().collect();
    assert_eq!(entered.difference(&listed).copied().collect::<Vec<_>>(), [""; 0], "add to classes.txt");
    assert_eq!(measured.difference(&all).copied().collect::<Vec<_>>(), [""; 0], "not a class");
    assert_eq!(unmeasured.difference(&entered).copied().collect::<Vec<_>>(), [""; 0], "no packet enters it");
}

#[test]
fn each_configuration_accounts_for_each_packet() {
    let folder = TemporaryFolder::new().expect("a folder");
    let own = ClickProgram::clickbox(Path::new(PROGRAM), Duration::from_secs(60));
    let mut workbench = Workbench::new(own, None, folder.path());
    let file = folder.path().join("class.click");
    for configuration in class_configurations() {
        let name = configuration.name;
        let comparison = Comparison {
            config: name.into(),
            text: configuration.text,
            traffic: Traffic::Mixed,
            size: FrameSize::Bytes(64),
            flows: 100,
            load: Load::default(),
            packets: PACKETS,
            runs: 1,
            seed: 1,
            floor: false,
            of_class: true,
        };
        let (text, _) = workbench.prepare(&comparison).expect(name);
        let pattern = format!("{}(", configuration.class);
        assert!(
            text.contains(&pattern) || text.contains(&format!(" {}", configuration.class)),
            "{name} is not in its configuration: {text}"
        );
        std::fs::write(&file, &text).expect("a file");
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--json"]).arg(&file).args(["--handler", "chain/out.count"]);
        let run = command.output().expect("the program starts");
        let messages = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{name}: {messages}");
        let summary: Value = serde_json::from_slice(&run.stdout).expect(name);
        let account = &summary["account"];
        let fate =
            |fate: &str| account["fates"][fate].as_u64().unwrap_or_else(|| panic!("{name}: {account}"));
        let sum = |fates: &[&str]| fates.iter().map(|name| fate(name)).sum::<u64>();
        let lost = account["lost"].as_object().into_iter().flatten();
        let lost: u64 = lost.filter_map(|(_, count)| count.as_u64()).sum();
        // Some may wait in a queue when the source has ended.
        let waiting = account["waiting"].as_array().into_iter().flatten();
        let waiting: u64 = waiting.filter_map(|place| place["packets"].as_u64()).sum();
        assert_eq!(fate("received"), PACKETS, "{name}");
        assert_eq!(
            sum(&["received", "made", "copied"]),
            sum(&["delivered", "discarded", "consumed", "merged"]) + lost + waiting,
            "{name}: {account}"
        );
        let out = summary["handlers"]["chain/out.count"].as_str().and_then(|count| count.parse::<u64>().ok());
        assert!(
            out.is_some_and(|out| out > 0),
            "{name}: {out:?} of {PACKETS} packets reach `out`: {messages}"
        );
    }
}
