//! Compares the definitions in a stack with the existing boxes and switches.

use super::flows::FlowChanges;
use crate::store::{StoredFlows, StoredSwitch};
use api::{AddFlow, AddPort, CreateBox, CreateSwitch, File, PortName, StackName};
use std::collections::HashSet;

/// The difference between an existing box and its definition in a stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BoxDiff {
    /// The configuration or its files differ: the configuration is swapped.
    pub(super) reload: bool,
    /// Settings differ that can change while the box runs, such as its weight.
    pub(super) change: bool,
    /// The box must be replaced.
    pub(super) replace: bool,
    /// Descriptions of the differences.
    pub(super) differences: Vec<String>,
}

impl BoxDiff {
    /// Records a difference that requires replacing the box.
    fn compare<T: std::fmt::Display>(&mut self, what: &str, before: T, after: T) {
        let (before, after) = (before.to_string(), after.to_string());
        if before != after {
            self.replace = true;
            self.differences.push(format!("{what} {before} -> {after}"));
        }
    }
}

/// Compares an existing box and its main configuration with its definition.
pub(super) fn diff_box((there, text, files): (&CreateBox, &str, &[File]), wanted: &CreateBox) -> BoxDiff {
    let mut found = BoxDiff::default();
    let image = |definition: &CreateBox| match definition.image_digest() {
        Some(digest) => digest.to_string(),
        None => "built-in".into(),
    };
    found.compare("image", image(there), image(wanted));
    let sandbox = |definition: &CreateBox| format!("{:?}", definition.sandbox).to_lowercase();
    found.compare("sandbox", sandbox(there), sandbox(wanted));
    found.compare("memory", there.memory, wanted.memory);
    found.compare("ring", there.ring, wanted.ring);
    found.compare("owner", &there.owner, &wanted.owner);
    found.compare("cores", u32::from(there.cores), u32::from(wanted.cores));
    found.compare("dedicated", there.dedicated, wanted.dedicated);
    found.compare("share_packets", there.share_packets, wanted.share_packets);
    found.compare("ports", there.ports.len(), wanted.ports.len());
    for (number, (before, after)) in there.ports.iter().zip(&wanted.ports).enumerate() {
        found.compare(&format!("port {number}"), &before.attach, &after.attach);
        // If the definition has no address, the existing random one stays.
        if let (Some(before), Some(after)) = (before.mac, after.mac) {
            found.compare(&format!("address of port {number}"), before, after);
        }
        if before.limits != after.limits {
            found.replace = true;
            found.differences.push(format!("limits of port {number}"));
        }
    }
    let mut change = |what: &str, differs: bool| {
        if differs {
            found.change = true;
            found.differences.push(what.to_string());
        }
    };
    change(
        &format!("weight {} -> {}", there.cpu_weight, wanted.cpu_weight),
        there.cpu_weight != wanted.cpu_weight,
    );
    change("limit of CPU time", there.cpu_limit != wanted.cpu_limit);
    change("restart policy", there.restart != wanted.restart);
    change("keeping of handler writes", there.keep_writes != wanted.keep_writes);
    change("labels", there.labels != wanted.labels);
    change("automatic start", there.start != wanted.start);
    let same_files = wanted.files.iter().all(|file| files.contains(file));
    if text != wanted.configuration || !same_files {
        found.reload = true;
        found.differences.push(if text == wanted.configuration { "files" } else { "configuration" }.into());
    }
    found
}

/// The settings in which an existing switch differs from its definition in a stack. If there are any, the switch must be
/// replaced. With whom it is shared can be changed.
pub(super) fn diff_switch(there: &CreateSwitch, wanted: &CreateSwitch) -> Vec<String> {
    let mut differences = Vec::new();
    for (what, before, after) in [
        ("age", there.age_seconds, wanted.age_seconds),
        ("addresses per port", there.addresses_per_port, wanted.addresses_per_port),
    ] {
        if before != after {
            differences.push(format!("{what} {before} -> {after}"));
        }
    }
    if there.owner != wanted.owner {
        differences.push(format!("owner {} -> {}", there.owner, wanted.owner));
    }
    if there.mode != wanted.mode {
        differences.push("mode".into());
    }
    if there.controllers != wanted.controllers {
        differences.push("controllers".into());
    }
    if there.fail_mode != wanted.fail_mode {
        differences.push("fail mode".into());
    }
    differences
}

/// The difference between the ports of a switch and those in a stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PortDiff {
    /// Ports of the stack to remove, including changed ones.
    pub(super) gone: Vec<AddPort>,
    /// Ports to add, including changed ones.
    pub(super) new: Vec<AddPort>,
    /// Ports that the stack did not make and does not define.
    pub(super) others: Vec<AddPort>,
}

/// Compares the ports of a switch with those in a stack. Ports that the stack did not make stay.
///
/// # Errors
///
/// A port that the stack did not make differs from the one of its name in the stack.
pub(super) fn diff_ports(
    there: &StoredSwitch,
    wanted: &[AddPort],
    stack: &StackName,
) -> Result<PortDiff, PortName> {
    let mut found = PortDiff::default();
    for port in &there.definition.ports {
        let is_ours = there.makers.get(&port.name) == Some(stack);
        match wanted.iter().find(|wanted| wanted.name == port.name) {
            Some(wanted) if wanted == port => {}
            None if !is_ours => found.others.push(port.clone()),
            Some(_) if !is_ours => return Err(port.name.clone()),
            _ => found.gone.push(port.clone()),
        }
    }
    found.new = wanted.iter().filter(|port| !there.definition.ports.contains(port)).cloned().collect();
    Ok(found)
}

/// Compares the flows of a switch with those in a stack. Flows that the stack did not make stay.
pub(super) fn diff_flows(there: &StoredFlows, wanted: &[AddFlow], stack: &StackName) -> FlowChanges {
    let ours = || there.list.iter().filter(|stored| stored.stack.as_ref() == Some(stack));
    let known: HashSet<&AddFlow> = ours().map(|stored| &stored.flow).collect();
    let wanted: Vec<AddFlow> = wanted.iter().map(AddFlow::with_priority).collect();
    let kept: HashSet<&AddFlow> = wanted.iter().collect();
    FlowChanges {
        gone: ours().filter(|stored| !kept.contains(&stored.flow)).cloned().collect(),
        new: wanted.iter().filter(|flow| !known.contains(flow)).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{PortRequest, Size};

    #[test]
    fn differences_determine_the_change() {
        let mut there = CreateBox::new("fw".parse().unwrap(), "");
        there.ports = vec![PortRequest { mac: Some(api::MacAddr::new([2; 6])), ..PortRequest::default() }];
        let mut same = there.clone();
        same.configuration = "Idle;".into();
        same.ports[0].mac = None;
        let compare = |wanted: &CreateBox| diff_box((&there, "Idle;", &[]), wanted);
        assert_eq!(compare(&same), BoxDiff::default());
        let wanted = CreateBox { memory: Size(16 << 20), configuration: "Discard;".into(), ..same.clone() };
        let found = compare(&wanted);
        assert!(found.replace && found.reload && !found.change);
        assert_eq!(found.differences, ["memory 8M -> 16M", "configuration"]);
        let wanted = CreateBox { cpu_weight: 200.try_into().unwrap(), ..same.clone() };
        let found = compare(&wanted);
        assert!(found.change && !found.replace && !found.reload);
        assert_eq!(found.differences, ["weight 100 -> 200"]);
        let digest = api::ImageDigest([0xcd; 32]);
        let found = compare(&CreateBox { image: Some(api::ImageSource::Digest(digest)), ..same.clone() });
        assert!(found.replace && !found.reload && !found.change);
        assert_eq!(found.differences, [format!("image built-in -> sha256:{}", "cd".repeat(32))]);
        let file = File { name: "a".into(), contents: "1".into() };
        assert!(compare(&CreateBox { files: vec![file], ..same }).reload);
    }

    #[test]
    fn changed_switch_ports_are_removed_and_added() {
        let port = |name: &str| AddPort {
            name: name.parse().unwrap(),
            driver: api::PortDriver::Null {},
            addresses: Vec::new(),
            default: false,
            limits: api::Limits::default(),
        };
        let mut there = CreateSwitch::new("lan".parse().unwrap());
        there.ports = vec![port("a"), port("b"), port("hand"), port("other")];
        let mut wanted = there.clone();
        wanted.ports = vec![port("b"), port("c")];
        let (edge, core): (StackName, StackName) = ("edge".parse().unwrap(), "core".parse().unwrap());
        let makers = [("a", &edge), ("b", &edge), ("other", &core)];
        let stored = StoredSwitch {
            definition: there.clone(),
            addresses: Vec::new(),
            flows: crate::store::StoredFlows::default(),
            steering: crate::store::StoredSteering::default(),
            makers: makers.map(|(port, stack)| (port.parse().unwrap(), stack.clone())).into(),
            stack: Some(edge.clone()),
            created: api::Time::now(),
        };
        let found = diff_ports(&stored, &wanted.ports, &edge).unwrap();
        assert_eq!((found.gone, found.new), (vec![port("a")], vec![port("c")]));
        assert_eq!(found.others, [port("hand"), port("other")]);
        // A port that is as the stack defines it needs no change, whoever made it. Another one is not touched.
        wanted.ports.push(port("hand"));
        assert_eq!(diff_ports(&stored, &wanted.ports, &edge).unwrap().others, [port("other")]);
        wanted.ports[2].default = true;
        assert_eq!(diff_ports(&stored, &wanted.ports, &edge), Err("hand".parse().unwrap()));
        assert!(diff_switch(&there, &wanted).is_empty());
        wanted.age_seconds = 5;
        assert_eq!(diff_switch(&there, &wanted), ["age 300 -> 5"]);
    }
}
