//! The accounts of all fabrics, and of the links between them.
//!
//! A fabric reports its own places. A link has its ends in two fabrics, so its account is put together here. Both ends are
//! asked twice, alternately; what they sent between the readings bounds by how much the two sides of the account can differ.

use super::fabrics::Fabrics;
use super::link::FabricLink;
use super::proxy;
use crate::error::OperationError;
use api::{AccountPlace, AccountRow, BoxName, Owner, SwitchName};
use protocol::fabric::{LinkEnd, orders};

/// The boxes and switches whose accounts are read; `None` means all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AccountPlaces {
    pub(crate) boxes: Option<Vec<BoxName>>,
    pub(crate) switches: Option<Vec<SwitchName>>,
    /// An owner of whom all is read, with the proxies in the owner's fabric.
    pub(crate) owner: Option<Owner>,
}

impl AccountPlaces {
    fn has_switch(&self, name: &SwitchName) -> bool {
        self.switches.as_ref().is_none_or(|switches| switches.contains(name))
    }

    fn has_all_of(&self, owner: &Owner) -> bool {
        self.owner.as_ref() == Some(owner)
    }
}

/// An end of a link as it was read twice, and the owner whose fabric has it.
struct ReadEnd {
    owner: Owner,
    first: LinkEnd,
    second: LinkEnd,
}

impl ReadEnd {
    /// Packets that it sent between the readings.
    fn moved(&self) -> u64 {
        self.second.sent.saturating_sub(self.first.sent)
    }

    fn is_other_end_of(&self, other: &Self) -> bool {
        let LinkEnd { switch, port, far_switch, far_port, link, .. } = &self.first;
        let far = &other.first;
        *link == far.link
            && (switch, port, far_switch, far_port)
                == (&far.far_switch, &far.far_port, &far.switch, &far.port)
    }
}

impl Fabrics {
    /// The accounts of boxes, switches, and links between fabrics.
    pub(crate) fn account(&self, places: &AccountPlaces) -> Result<Vec<AccountRow>, OperationError> {
        let parts = self.each(|link| {
            let all_of = self.are_several() && places.has_all_of(link.owner());
            let order = match all_of {
                true => orders::Account { boxes: None, switches: None, services: true },
                // Names of other fabrics do no harm; those of switches can have a proxy.
                false => orders::Account {
                    boxes: places.boxes.clone(),
                    switches: places.switches.clone(),
                    services: true,
                },
            };
            Ok((link.owner().clone(), link.ask(order)?))
        })?;
        let rows = parts.into_iter().flat_map(|(owner, rows)| {
            rows.into_iter().map(move |row| AccountRow { place: self.place(&owner, row.place), ..row })
        });
        let mut rows: Vec<AccountRow> = rows.collect();
        if self.are_several() {
            rows.extend(self.account_of_links(places)?);
        }
        Ok(rows)
    }

    /// A place of a fabric, which calls a proxy a switch.
    fn place(&self, fabric: &Owner, place: AccountPlace) -> AccountPlace {
        let owner = || fabric.clone();
        match place {
            AccountPlace::Switch { switch } if self.is_proxy(&switch, fabric) => {
                AccountPlace::Proxy { switch, owner: owner() }
            }
            AccountPlace::Port { switch, port } if self.is_proxy(&switch, fabric) => {
                AccountPlace::ProxyPort { switch, owner: owner(), port }
            }
            place => place,
        }
    }

    /// The links between fabrics.
    fn account_of_links(&self, places: &AccountPlaces) -> Result<Vec<AccountRow>, OperationError> {
        let read = || {
            self.each(|link: &FabricLink| {
                // A fabric of an earlier version does not report them.
                let ends = link.ask(orders::LinkEnds {}).unwrap_or_default();
                Ok(ends.into_iter().map(|end| (link.owner().clone(), end)).collect::<Vec<_>>())
            })
        };
        let (first, second) = (read()?.into_iter().flatten(), read()?);
        let second: Vec<_> = second.into_iter().flatten().collect();
        let is_same = |first: &LinkEnd, second: &LinkEnd| {
            (first.link, &first.switch, &first.port) == (second.link, &second.switch, &second.port)
        };
        let mut ends: Vec<ReadEnd> = first
            .filter_map(|(owner, first)| {
                let again =
                    second.iter().find(|(found, second)| *found == owner && is_same(&first, second))?;
                Some(ReadEnd { second: again.1.clone(), owner, first })
            })
            .collect();
        let mut rows = Vec::new();
        // In the order in which they were read.
        while !ends.is_empty() {
            let early = ends.remove(0);
            let late = ends.iter().position(|end| end.is_other_end_of(&early)).map(|at| ends.remove(at));
            let is_shown = [&early.first.switch, &early.first.far_switch]
                .into_iter()
                .any(|switch| places.has_switch(switch))
                || [Some(&early), late.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(|end| places.has_all_of(&end.owner));
            if is_shown {
                rows.push(self.link_row(&early, late.as_ref()));
            }
        }
        Ok(rows)
    }

    /// The account of a link of which one end was read before the other, twice each. The second reading of the one and the
    /// first of the other are next to each other, and the other two readings enclose them.
    fn link_row(&self, early: &ReadEnd, late: Option<&ReadEnd>) -> AccountRow {
        let place = self.link_place(early, late);
        let Some(late) = late else {
            // The fabric at the other end is not there, or has no end of this link.
            return AccountRow { incoming: None, out: None, waiting: None, ..AccountRow::new(place) };
        };
        let ends = [&early.second, &late.first];
        let sum =
            |count: fn(&LinkEnd) -> u64| Some(ends.iter().map(|end| count(end)).fold(0, u64::saturating_add));
        AccountRow {
            incoming: sum(|end| end.sent),
            out: sum(|end| end.received),
            waiting: sum(|end| end.waiting),
            moved: early.moved().saturating_add(late.moved()),
            ..AccountRow::new(place)
        }
        .compare()
    }

    fn link_place(&self, early: &ReadEnd, late: Option<&ReadEnd>) -> AccountPlace {
        let LinkEnd { switch, port, far_switch, far_port, .. } = early.first.clone();
        if switch == far_switch {
            let at_proxy = |end: &&ReadEnd| self.is_proxy(&switch, &end.owner);
            let proxy = [Some(early), late].into_iter().flatten().find(at_proxy);
            let leads_to = |owner: &Owner| proxy::owner_port(owner) == port;
            let owners = || self.all().iter().map(|link| link.owner().clone()).find(leads_to);
            // If only the end at the switch is there, its name tells the owner.
            if let Some(owner) = proxy.map(|end| end.owner.clone()).or_else(owners) {
                let port = match proxy {
                    Some(end) if end.owner == early.owner => far_port,
                    _ => port,
                };
                return AccountPlace::ProxyLink { switch, port, owner };
            }
        }
        match (&switch, &port) < (&far_switch, &far_port) {
            true => AccountPlace::Link { switch, port, far_switch, far_port },
            false => {
                AccountPlace::Link { switch: far_switch, port: far_port, far_switch: switch, far_port: port }
            }
        }
    }
}
