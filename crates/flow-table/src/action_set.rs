//! The action set of a packet.

use std::collections::BTreeMap;

use crate::{Action, Field, Output};

/// The actions that are performed when the pipeline ends (OpenFlow 1.3.5, 5.10): at most one of each type, in a fixed
/// order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ActionSet {
    copy_ttl_in: bool,
    pop_mpls: Option<u16>,
    pop_vlan: bool,
    pop_pbb: bool,
    push_mpls: Option<u16>,
    push_pbb: Option<u16>,
    push_vlan: Option<u16>,
    copy_ttl_out: bool,
    dec_mpls_ttl: bool,
    dec_ip_ttl: bool,
    set_mpls_ttl: Option<u8>,
    set_ip_ttl: Option<u8>,
    fields: BTreeMap<Field, u128>,
    queue: Option<u32>,
    group: Option<u32>,
    output: Option<Output>,
}

impl ActionSet {
    /// Adds an action; it replaces the one of the same type.
    pub fn write(&mut self, action: Action) {
        match action {
            Action::CopyTtlIn => self.copy_ttl_in = true,
            Action::PopMpls(eth_type) => self.pop_mpls = Some(eth_type),
            Action::PopVlan => self.pop_vlan = true,
            Action::PopPbb => self.pop_pbb = true,
            Action::PushPbb(eth_type) => self.push_pbb = Some(eth_type),
            Action::PushMpls(eth_type) => self.push_mpls = Some(eth_type),
            Action::PushVlan(eth_type) => self.push_vlan = Some(eth_type),
            Action::CopyTtlOut => self.copy_ttl_out = true,
            Action::DecMplsTtl => self.dec_mpls_ttl = true,
            Action::DecIpTtl => self.dec_ip_ttl = true,
            Action::SetMplsTtl(value) => self.set_mpls_ttl = Some(value),
            Action::SetIpTtl(value) => self.set_ip_ttl = Some(value),
            Action::SetField(field, value) => {
                self.fields.insert(field, value);
            }
            Action::SetQueue(queue) => self.queue = Some(queue),
            Action::Group(group) => self.group = Some(group),
            Action::Output(output) => self.output = Some(output),
            // They are refused.
            Action::SetIfPresent(..) | Action::TagVlanVid(_) | Action::TagVlanPcp(_) | Action::StripVlan => {}
        }
    }

    /// Removes all actions.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The actions in the order in which they are performed. A group takes the place of the output. Without either the
    /// packet is dropped.
    pub fn actions(&self) -> impl Iterator<Item = Action> {
        let flag = |set: bool, action: Action| set.then_some(action);
        let destination = self.group.map(Action::Group).or(self.output.map(Action::Output));
        let before = [
            flag(self.copy_ttl_in, Action::CopyTtlIn),
            self.pop_mpls.map(Action::PopMpls),
            flag(self.pop_vlan, Action::PopVlan),
            flag(self.pop_pbb, Action::PopPbb),
            self.push_mpls.map(Action::PushMpls),
            self.push_pbb.map(Action::PushPbb),
            self.push_vlan.map(Action::PushVlan),
            flag(self.copy_ttl_out, Action::CopyTtlOut),
            flag(self.dec_mpls_ttl, Action::DecMplsTtl),
            flag(self.dec_ip_ttl, Action::DecIpTtl),
            self.set_mpls_ttl.map(Action::SetMplsTtl),
            self.set_ip_ttl.map(Action::SetIpTtl),
        ];
        // A field that names a header comes after the fields of that header.
        let fields = |names: bool| {
            let fields = self.fields.iter().filter(move |(field, _)| field.names_a_header() == names);
            fields.map(|(field, value)| Action::SetField(*field, *value))
        };
        let fields = fields(false).chain(fields(true).rev());
        let after = [self.queue.map(Action::SetQueue), destination];
        before.into_iter().flatten().chain(fields).chain(after.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_a_fixed_order_and_one_of_each_type() {
        let mut set = ActionSet::default();
        for action in [
            Action::Output(Output::Port(1)),
            Action::SetField(Field::EthDst, 7),
            Action::DecIpTtl,
            Action::PopVlan,
            Action::Output(Output::Port(2)),
            Action::SetField(Field::EthDst, 8),
        ] {
            set.write(action);
        }
        let expected = [
            Action::PopVlan,
            Action::DecIpTtl,
            Action::SetField(Field::EthDst, 8),
            Action::Output(Output::Port(2)),
        ];
        assert!(set.actions().eq(expected));
        set.write(Action::Group(3));
        assert_eq!(set.actions().last(), Some(Action::Group(3)), "a group takes the place of the output");
        set.clear();
        assert_eq!(set.actions().count(), 0);
        let fields = [(Field::EthType, 0x88b5), (Field::IpProto, 6), (Field::Ipv4Src, 7)];
        let fields = fields.map(|(field, value)| Action::SetField(field, value));
        fields.into_iter().for_each(|action| set.write(action));
        assert!(set.actions().eq(fields.into_iter().rev()), "a header is renamed after its fields were set");
    }
}
