//! The shortest possible run of each measurement in each kind of sandbox: it must finish with plausible figures.

use bench::{
    BoxProgram, IdleMode, Interconnect, IoMode, Machine, MeasureError, NeighbourLoad, PacketSizes,
    PlatformKind, ReportScope, SamplePlan, TestBed, Times,
};
use std::time::Duration;
use test_support::{Capability, skip};

const SHORT: SamplePlan = SamplePlan { runs: 1, time: Duration::from_millis(20) };

/// Runs `check` on a test bed of each kind.
fn on_each(check: impl Fn(&TestBed)) {
    for (kind, inside) in [
        (PlatformKind::Vm, BoxProgram::Click),
        (PlatformKind::Process, BoxProgram::Click),
        (PlatformKind::Vm, BoxProgram::Probe),
        (PlatformKind::Process, BoxProgram::Probe),
    ] {
        let image = if inside == BoxProgram::Click { image::CLICKBOX } else { image::PROBE };
        match TestBed::new(kind, inside, image, None) {
            Ok(bed) => check(&bed),
            Err(MeasureError::NoKvm) => skip(Capability::Kvm, MeasureError::NoKvm),
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
fn boot_times_are_measured() {
    on_each(|bed| {
        let boot = bench::boot(bed, 3, SHORT, None).unwrap();
        assert!(plausible(&boot.boot_ms) && plausible(&boot.install_ms), "{boot:?}");
        assert!(boot.copy_ms.is_some_and(|times| plausible(&times)), "{boot:?}");
        assert!(boot.steps_ms.create > 0.0 && boot.steps_ms.install < boot.boot_ms.p50, "{boot:?}");
        assert!((16.0..2_000.0).contains(&boot.private_kb), "{boot:?}");
    });
}

#[test]
fn packet_rates_are_measured() {
    on_each(|bed| {
        for mode in [IoMode::Send, IoMode::Receive, IoMode::Forward, IoMode::Mirror] {
            let io = bench::io(bed, mode, 128, 64, SHORT).unwrap();
            assert!(io.mpps > 0.0 && (io.gbps - io.mpps * 1.024).abs() < 1e-9, "{io:?}");
        }
    });
}

#[test]
fn chains_are_measured() {
    on_each(|bed| {
        for (length, interconnect) in [
            (2, Interconnect::Copy),
            (4, Interconnect::Copy),
            (4, Interconnect::Pool),
            (4, Interconnect::Pipe),
        ] {
            let chain = bench::chain(bed, length, interconnect, 1472, 64, SHORT).unwrap();
            assert!(chain.mpps > 0.0, "{chain:?}");
        }
    });
}

#[test]
fn density_is_measured() {
    on_each(|bed| {
        let density = bench::density(bed, 4, 64, 128, SHORT).unwrap();
        assert!(density.mpps > 0.0 && density.spread.is_finite(), "{density:?}");
    });
}

#[test]
fn response_times_are_measured() {
    on_each(|bed| {
        for (waiting, others, load) in [
            (IdleMode::Idle, 2, NeighbourLoad::Idle),
            (IdleMode::Idle, 1, NeighbourLoad::Cpu),
            (IdleMode::Polling, 0, NeighbourLoad::Idle),
        ] {
            let row = bench::latency(bed, waiting, others, load, SHORT).unwrap();
            assert!(0.0 < row.p50_us && row.p50_us <= row.p99_us, "{row:?}");
        }
        let state = bench::state(bed, &[1, 4096], SHORT).unwrap();
        assert_eq!(state.rows.iter().map(|row| row.size).collect::<Vec<_>>(), [1, 4096]);
        assert!(state.rows.iter().all(|row| row.write_us.p50 > 0.0 && row.read_us.p50 > 0.0), "{state:?}");
    });
}

#[test]
fn memory_is_measured() {
    on_each(|bed| {
        let memory = bench::memory(bed, 50).unwrap();
        let tables: Vec<_> = memory.tables.iter().map(|table| (table.entries, table.count)).collect();
        match bed.box_program() {
            BoxProgram::Click => {
                assert_eq!(tables, [("routes", 50), ("rules", 50), ("compact rules", 50), ("patterns", 20)])
            }
            BoxProgram::Probe => assert_eq!(tables, []),
        }
        for table in &memory.tables {
            assert!(table.text_kb < table.adds_kb && table.adds_kb < table.private_kb, "{table:?}");
        }
    });
}

#[test]
fn invalid_settings_are_rejected() {
    assert!(matches!(
        TestBed::new(PlatformKind::Thread, BoxProgram::Click, image::CLICKBOX, None),
        Err(MeasureError::NoEntry)
    ));
    on_each(|bed| {
        assert!(matches!(bench::io(bed, IoMode::Send, 64, 100, SHORT), Err(MeasureError::Ring(_))));
    });
}

/// A minimal report: the page has every chapter and needs no other resources.
#[test]
fn a_report_is_rendered_as_a_page() {
    let scope = ReportScope {
        boxes: 2,
        sizes: vec![64, 1500],
        rings: vec![64, 1024],
        others: vec![0, 1],
        lengths: vec![2, 3],
        steered: vec![1],
        senders: vec![1, 2],
        values: vec![1, 100],
        program: None,
        packets: 1_000,
        classes: Some(200),
        entries: 10,
    };
    let mut parts = Vec::new();
    let bed = TestBed::new(PlatformKind::Process, BoxProgram::Click, image::CLICKBOX, None).unwrap();
    let report =
        bench::report(&bed, Machine::this(), &scope, SHORT, |what| parts.push(what.to_string())).unwrap();
    assert_eq!(parts.len(), 8);
    let shown: Vec<_> = report.steering.iter().map(|row| (row.chain, row.flows, row.size)).collect();
    let sizes = [PacketSizes::Bytes(64), PacketSizes::Bytes(1472), PacketSizes::Mix];
    assert_eq!(shown, sizes.map(|size| [(1, 60_000, size); 3]).concat());
    assert!(report.steering.iter().all(|row| row.mpps > 0.0 && row.latency_us.p50 > 0.0));
    let page = bench::page(&report);
    for text in [
        "Start",
        "Many boxes on one core",
        "Chains",
        "Answers",
        "Handlers",
        "Memory of a port",
        "sandboxed processes",
        "Memory that 1000 routes add",
        "Element classes in the image",
        "Delay, default chain",
        "not measured",
        "Xeon E3-1220",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Machines and caveats come before the figures.
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("Xeon E3-1220") < at("class=\"caveats\"") && at("class=\"caveats\"") < at("<table"));
    assert_eq!(page.matches("<svg").count(), 8);
    assert_eq!(
        (page.matches("<svg").count(), page.matches("<figure").count()),
        (page.matches("</svg>").count(), 8)
    );
    for foreign in ["http", "src=", "href=", "@import", "NaN", "inf"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}
