//! Each measurement, as short as it can be, in each kind of sandbox: that it ends, and that its figures can be.

use bench::{Effort, Error, Inside, Joint, Kind, Load, Machine, Mode, Scope, Stand, Times, Waiting};
use std::time::Duration;

const SHORT: Effort = Effort { runs: 1, time: Duration::from_millis(20) };

/// Runs `check` on a stand of each kind.
fn on_each(check: impl Fn(&Stand)) {
    for (kind, inside) in [
        (Kind::Vm, Inside::Click),
        (Kind::Process, Inside::Click),
        (Kind::Vm, Inside::Probe),
        (Kind::Process, Inside::Probe),
    ] {
        match Stand::new(kind, inside, None) {
            Ok(stand) => check(&stand),
            Err(Error::NoKvm) => eprintln!("SKIPPED for virtual machines: there is no usable /dev/kvm here"),
            Err(error) => panic!("{kind:?} {inside:?}: {error}"),
        }
    }
}

fn plausible(times: &Times) -> bool {
    0.0 < times.p50
        && times.p50 <= times.p99
        && times.p99 <= times.max
        && times.first > 0.0
        && times.last > 0.0
}

#[test]
fn starts_are_measured() {
    on_each(|stand| {
        let boot = bench::boot(stand, 3, SHORT).unwrap();
        assert!(plausible(&boot.boot_ms) && plausible(&boot.install_ms), "{boot:?}");
        assert!(boot.copy_ms.is_some_and(|times| plausible(&times)), "{boot:?}");
        assert!(boot.steps_ms.create > 0.0 && boot.steps_ms.install < boot.boot_ms.p50, "{boot:?}");
        assert!((16.0..2_000.0).contains(&boot.private_kb), "{boot:?}");
    });
}

#[test]
fn packets_are_measured() {
    on_each(|stand| {
        for mode in [Mode::Send, Mode::Receive, Mode::Forward, Mode::Mirror] {
            let io = bench::io(stand, mode, 128, 64, SHORT).unwrap();
            assert!(io.mpps > 0.0 && (io.gbps - io.mpps * 1.024).abs() < 1e-9, "{io:?}");
        }
    });
}

#[test]
fn chains_are_measured() {
    on_each(|stand| {
        for (length, joint) in [(2, Joint::Copy), (4, Joint::Copy), (4, Joint::Pool), (4, Joint::Pipe)] {
            let chain = bench::chain(stand, length, joint, 1472, 64, SHORT).unwrap();
            assert!(chain.mpps > 0.0, "{chain:?}");
        }
    });
}

#[test]
fn many_boxes_are_measured() {
    on_each(|stand| {
        let density = bench::density(stand, 4, 64, 128, SHORT).unwrap();
        assert!(density.mpps > 0.0 && density.spread.is_finite(), "{density:?}");
    });
}

#[test]
fn answers_are_measured() {
    on_each(|stand| {
        for (waiting, others, load) in
            [(Waiting::Idle, 2, Load::Idle), (Waiting::Idle, 1, Load::Cpu), (Waiting::Polling, 0, Load::Idle)]
        {
            let row = bench::latency(stand, waiting, others, load, SHORT).unwrap();
            assert!(0.0 < row.p50_us && row.p50_us <= row.p99_us, "{row:?}");
        }
        let state = bench::state(stand, &[1, 4096], SHORT).unwrap();
        assert_eq!(state.rows.iter().map(|row| row.size).collect::<Vec<_>>(), [1, 4096]);
        assert!(state.rows.iter().all(|row| row.write_us.p50 > 0.0 && row.read_us.p50 > 0.0), "{state:?}");
    });
}

#[test]
fn memory_is_measured() {
    on_each(|stand| {
        let memory = bench::memory(stand, 50).unwrap();
        let tables: Vec<_> = memory.tables.iter().map(|table| (table.entries, table.count)).collect();
        match stand.inside() {
            Inside::Click => assert_eq!(tables, [("routes", 50), ("rules", 50), ("patterns", 20)]),
            Inside::Probe => assert_eq!(tables, []),
        }
        for table in &memory.tables {
            assert!(table.text_kb < table.adds_kb && table.adds_kb < table.private_kb, "{table:?}");
        }
    });
}

#[test]
fn settings_that_cannot_be_are_refused() {
    assert!(matches!(Stand::new(Kind::None, Inside::Click, None), Err(Error::NoEntry)));
    on_each(|stand| {
        assert!(matches!(bench::io(stand, Mode::Send, 64, 100, SHORT), Err(Error::Ring(_))));
    });
}

/// A report of almost nothing: every chapter of the page is there, and the page needs nothing from elsewhere.
#[test]
fn a_report_becomes_a_page() {
    let scope = Scope {
        boxes: 2,
        sizes: vec![64, 1500],
        rings: vec![64, 1024],
        others: vec![0, 1],
        lengths: vec![2, 3],
        senders: vec![1, 2],
        values: vec![1, 100],
        entries: 10,
    };
    let mut told = Vec::new();
    let stand = Stand::new(Kind::Process, Inside::Click, None).unwrap();
    let report =
        bench::report(&stand, Machine::this(), &scope, SHORT, |what| told.push(what.to_string())).unwrap();
    assert_eq!(told.len(), 6);
    let page = bench::page(&report);
    for text in [
        "Start",
        "Many boxes on one core",
        "Chains",
        "Answers",
        "Handlers",
        "Memory of a port",
        "sandboxed processes",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("<svg").count(), 8);
    assert_eq!(
        (page.matches("<svg").count(), page.matches("<figure").count()),
        (page.matches("</svg>").count(), 8)
    );
    for foreign in ["http", "src=", "href=", "@import", "NaN", "inf"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}
