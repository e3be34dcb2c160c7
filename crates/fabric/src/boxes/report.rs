//! Describes how a box ended.

use model::escape;
use model::{CrashBatch, CrashPacket, CrashReport, Register, Time, Value};
pub(crate) use sandbox::ExitStatus;

/// Names of the general registers, in the order of the crash page.
const REGISTERS: [&str; 15] =
    ["rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// The report of an unexpected end.
pub(crate) fn report(end: &ExitStatus) -> CrashReport {
    let empty = CrashReport {
        time: Time::now(),
        cause: String::new(),
        address: None,
        function: None,
        configuration: None,
        element: None,
        message: String::new(),
        registers: Vec::new(),
        packet: None,
        batch: None,
    };
    match end {
        ExitStatus::Stopped => CrashReport { cause: "stopped on its own".into(), ..empty },
        ExitStatus::Killed => CrashReport { cause: "killed on request".into(), ..empty },
        ExitStatus::Vanished { status: 0 } => CrashReport { cause: "ended without a report".into(), ..empty },
        ExitStatus::Vanished { status } if *status < 0 => {
            CrashReport { cause: format!("killed by signal {}", status.unsigned_abs()), ..empty }
        }
        ExitStatus::Vanished { status } => {
            CrashReport { cause: format!("exited with status {status}"), ..empty }
        }
        ExitStatus::Crashed(found) => {
            let text = |bytes: &[u8]| Some(escape::line(bytes)).filter(|text| !text.is_empty());
            let (configuration, element) = match text(&found.element) {
                Some(whole) => match whole.split_once(':').filter(|(_, rest)| !rest.starts_with(':')) {
                    Some((configuration, element)) => {
                        (Some(configuration.to_string()), Some(element.trim().to_string()))
                    }
                    None => (Some("main".to_string()), Some(whole)),
                },
                None => (None, None),
            };
            let registers = &found.registers;
            let named = [("rip", registers.rip), ("rsp", registers.rsp), ("rflags", registers.rflags)];
            let all = named.into_iter().chain(REGISTERS.into_iter().zip(registers.general));
            let is_exception = matches!(found.cause, boundary::CrashCause::Exception { .. });
            let register =
                |(name, value): (&str, u64)| Register { name: name.into(), value: format!("{value:#x}") };
            CrashReport {
                cause: found.cause.to_string(),
                address: Some(found.address).filter(|address| *address != 0),
                configuration,
                element,
                message: escape::text(&found.message),
                registers: if is_exception { all.map(register).collect() } else { Vec::new() },
                packet: Some(found.packet.clone()).filter(|packet| !packet.is_empty()).map(Value),
                batch: batch(&found.batch),
                ..empty
            }
        }
    }
}

/// What a report says in a few words: the cause, and the element.
pub(crate) fn summary(report: &CrashReport) -> String {
    let at = report.element.as_deref().map(|element| format!(" in {element}")).unwrap_or_default();
    report.cause.clone() + &at
}

fn batch(found: &boundary::CrashBatch) -> Option<CrashBatch> {
    let packet = |packet: &boundary::CrashPacket| CrashPacket {
        length: packet.length,
        start: Value(packet.start.clone()),
    };
    (found.count > 0)
        .then(|| CrashBatch { count: found.count, packets: found.packets.iter().map(packet).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use boundary::{CrashCause, Registers};

    #[test]
    fn each_kind_of_end_has_a_cause() {
        for (end, cause) in [
            (ExitStatus::Vanished { status: -9 }, "killed by signal 9"),
            (ExitStatus::Vanished { status: 3 }, "exited with status 3"),
            (ExitStatus::Vanished { status: 0 }, "ended without a report"),
            (ExitStatus::Killed, "killed on request"),
        ] {
            assert_eq!(report(&end).cause, cause);
        }
        let crash = |cause, element: &[u8]| {
            report(&ExitStatus::Crashed(Box::new(boundary::CrashReport {
                cause,
                address: 8,
                registers: Registers { rip: 0x1000, ..Registers::default() },
                element: element.to_vec(),
                message: b"\x1b[31mred".to_vec(),
                packet: vec![1, 2],
                batch: boundary::CrashBatch {
                    count: 5,
                    packets: vec![boundary::CrashPacket { length: 60, start: vec![3] }],
                },
            })))
        };
        let found = crash(CrashCause::Exception { vector: 14, error_code: 4 }, b"second:c");
        assert_eq!(found.cause, "page fault (error 0x4)");
        assert_eq!((found.address, found.packet), (Some(8), Some(Value(vec![1, 2]))));
        let shown = vec![CrashPacket { length: 60, start: Value(vec![3]) }];
        assert_eq!(found.batch, Some(CrashBatch { count: 5, packets: shown }));
        assert_eq!(found.configuration.as_deref(), Some("second"));
        assert_eq!(found.element.as_deref(), Some("c"));
        assert_eq!(found.message, "\\u{1b}[31mred");
        assert_eq!((found.registers.len(), found.registers[0].value.as_str()), (18, "0x1000"));
        let found = crash(CrashCause::Panic, b"c");
        assert!(found.registers.is_empty());
        assert_eq!(found.configuration.as_deref(), Some("main"));
        assert_eq!(found.element.as_deref(), Some("c"));
    }
}
