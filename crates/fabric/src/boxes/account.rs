//! What a box reports of its packets, in the terms of the model.

use boundary::{PacketAccount, PacketFates};
use model::{ConfigurationName, DiscardedPackets, LostPackets, PacketPlaces, WaitingPackets, escape};
use reason::Name;

/// The totals of a report.
pub(super) fn totals(account: &PacketAccount) -> model::PacketAccount {
    let PacketFates { received, made, copied, delivered, discarded, consumed, merged } = account.fates;
    let (waiting, oldest_ns) = (account.waiting, account.oldest);
    model::PacketAccount {
        received,
        made,
        copied,
        delivered,
        discarded,
        consumed,
        merged,
        waiting,
        oldest_ns,
    }
}

/// The places of a report. The box wrote the names: they are escaped, and places in configurations that it cannot have
/// are left out.
pub(super) fn places(account: &PacketAccount) -> PacketPlaces {
    let named = |name: &str| match name {
        "" => Some(ConfigurationName::main()),
        name => name.parse().ok(),
    };
    let shown = |text: &str| escape::line(text.as_bytes());
    let losses = account.losses.iter().filter_map(|place| {
        Some(LostPackets {
            configuration: named(&place.configuration)?,
            element: shown(&place.element),
            reason: Name::parse(&place.reason).as_str().into(),
            packets: place.packets,
        })
    });
    let discards = account.discards.iter().filter_map(|place| {
        Some(DiscardedPackets {
            configuration: named(&place.configuration)?,
            connection: shown(&place.connection),
            packets: place.packets,
        })
    });
    let waits = account.waits.iter().filter_map(|place| {
        Some(WaitingPackets {
            configuration: named(&place.configuration)?,
            element: shown(&place.element),
            packets: place.packets,
            oldest_ns: place.oldest,
        })
    });
    PacketPlaces { losses: losses.collect(), discards: discards.collect(), waits: waits.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_box_reports_is_made_harmless() {
        let lost = |configuration: &str, element: &str| boundary::LostPackets {
            configuration: configuration.into(),
            element: element.into(),
            reason: "Denied\u{1b}[2J".into(),
            packets: 7,
        };
        let account = PacketAccount {
            losses: vec![lost("", "fw\u{1b}[2J"), lost("no name/", "x"), lost("second", "x")],
            ..PacketAccount::default()
        };
        let found = places(&account).losses;
        let names: Vec<&str> = found.iter().map(|place| place.configuration.as_str()).collect();
        assert_eq!(names, ["main", "second"]);
        assert_eq!(found[0].element, "fw\\u{1b}[2J");
        assert!(found.iter().all(|place| !place.reason.contains('\u{1b}')), "{found:?}");
    }
}
