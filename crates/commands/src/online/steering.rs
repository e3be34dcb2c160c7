//! The switch of a service or a chain that the user does not name.

use api::{ChainDetail, ChainName, PortName, SwitchMode, SwitchName, operation};

use super::client::Client;
use crate::error::{ChoiceError, CommandError};

/// The steering switches.
pub(crate) fn steering_switches(client: &Client) -> Result<Vec<SwitchName>, CommandError> {
    let switches = client.ask(&operation::LIST_SWITCHES, &[])?;
    let steering = switches.into_iter().filter(|status| status.mode == SwitchMode::Steering);
    Ok(steering.map(|status| status.name).collect())
}

/// How most commands are told a switch.
pub(crate) const SWITCH_OPTION: &str = "--switch";

/// The switch that the user named, or the only steering switch. `how` is how the command is told one.
pub(crate) fn chosen_switch(
    client: &Client,
    named: Option<&SwitchName>,
    how: &'static str,
) -> Result<SwitchName, CommandError> {
    match named {
        Some(named) => Ok(named.clone()),
        None => Ok(only_switch(steering_switches(client)?, how)?),
    }
}

/// Returns an error if there is no switch of this name.
pub(crate) fn require_switch(client: &Client, name: &SwitchName) -> Result<(), CommandError> {
    client.ask(&operation::SHOW_SWITCH, &[name.as_str()])?;
    Ok(())
}

/// Says that a switch, or all of them, have nothing of a kind.
pub(crate) fn none_of(kind: &str, switch: Option<&SwitchName>) -> String {
    match switch {
        Some(switch) => format!("switch {switch} has no {kind}"),
        None => format!("there are no {kind}"),
    }
}

fn only_switch(mut switches: Vec<SwitchName>, how: &'static str) -> Result<SwitchName, ChoiceError> {
    match (switches.pop(), switches.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(ChoiceError::NoSteeringSwitch),
        (Some(last), false) => {
            switches.push(last);
            Err(ChoiceError::SeveralSwitches(switches, how))
        }
    }
}

/// The chain of this name, at a switch if one is named. `how` is how the command is told one.
pub(crate) fn chosen_chain(
    client: &Client,
    switch: Option<&SwitchName>,
    name: &ChainName,
    how: &'static str,
) -> Result<ChainDetail, CommandError> {
    if let Some(switch) = switch {
        return client.ask(&operation::SHOW_CHAIN, &[switch.as_str(), name.as_str()]);
    }
    Ok(only_chain(client.ask(&operation::LIST_CHAINS, &[])?, name, how)?)
}

fn only_chain(
    chains: Vec<ChainDetail>,
    name: &ChainName,
    how: &'static str,
) -> Result<ChainDetail, ChoiceError> {
    let (mut found, others): (Vec<_>, Vec<_>) =
        chains.into_iter().partition(|detail| detail.status.chain.name == *name);
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => {
            let names = others.iter().map(|detail| detail.status.chain.name.as_str());
            Err(ChoiceError::NoChain {
                name: name.clone(),
                similar: super::client::nearest(name.as_str(), names),
            })
        }
        (Some(last), false) => {
            found.push(last);
            let switches = found.into_iter().map(|detail| detail.status.chain.switch).collect();
            Err(ChoiceError::SeveralChains(name.clone(), switches, how))
        }
    }
}

/// A port, possibly after the name of its switch, as in `lan.uplink`. Both names may contain dots: the longest switch that
/// there is counts.
pub(crate) fn split_port(
    text: &str,
    switches: &[SwitchName],
) -> Result<(Option<SwitchName>, PortName), api::NameError> {
    let at = |switch: &&SwitchName| {
        text.strip_prefix(switch.as_str()).is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
    };
    match switches.iter().filter(at).max_by_key(|switch| switch.as_str().len()) {
        Some(switch) => {
            let port = text.get(switch.as_str().len() + 1..).unwrap_or_default();
            Ok((Some(switch.clone()), port.parse()?))
        }
        None => Ok((None, text.parse()?)),
    }
}

/// The switch that is named one or more times, if any is.
pub(crate) fn same_switch(
    named: impl IntoIterator<Item = Option<SwitchName>>,
) -> Result<Option<SwitchName>, ChoiceError> {
    let mut named = named.into_iter().flatten();
    let first = named.next();
    match named.find(|other| first.as_ref() != Some(other)).zip(first.clone()) {
        Some((other, first)) => Err(ChoiceError::DifferentSwitches(first, other)),
        None => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<SwitchName> {
        list.iter().map(|name| name.parse().expect("a name")).collect()
    }

    #[test]
    fn the_only_steering_switch_needs_no_name() {
        let only = |list| only_switch(list, SWITCH_OPTION);
        assert_eq!(only(names(&["lan"])).map(|name| name.to_string()), Ok("lan".into()));
        assert_eq!(only(Vec::new()), Err(ChoiceError::NoSteeringSwitch));
        let message = |how| {
            let error = only_switch(names(&["lan", "wan"]), how).expect_err("there are two");
            CommandError::from(error).text()
        };
        let several = "there are several steering switches: lan, wan; choose one with";
        assert_eq!(message(SWITCH_OPTION), format!("{several} --switch"));
        assert_eq!(message("`clickbox flow ls SWITCH`"), format!("{several} `clickbox flow ls SWITCH`"));
    }

    #[test]
    fn a_switch_may_be_named_several_times() {
        let name = |text: &str| Some(text.parse::<SwitchName>().expect("a name"));
        assert_eq!(same_switch([None, None]), Ok(None));
        assert_eq!(same_switch([None, name("lan"), name("lan")]), Ok(name("lan")));
        let different =
            ChoiceError::DifferentSwitches("lan".parse().expect("a name"), "wan".parse().expect("a name"));
        assert_eq!(same_switch([name("lan"), None, name("wan")]), Err(different));
    }

    #[test]
    fn a_port_may_follow_its_switch() {
        let switches = names(&["lan", "lan.b"]);
        for (text, switch, port) in [
            ("lan.uplink", Some("lan"), "uplink"),
            ("lan.b.fw.0", Some("lan.b"), "fw.0"),
            ("lan.bx", Some("lan"), "bx"),
            ("uplink", None, "uplink"),
            ("fw.0", None, "fw.0"),
        ] {
            let (found, name) = split_port(text, &switches).expect(text);
            assert_eq!((found.as_ref().map(SwitchName::as_str), name.as_str()), (switch, port), "{text}");
        }
        assert!(split_port("lan.", &switches).is_ok_and(|(switch, _)| switch.is_none()));
        assert!(split_port("a b", &switches).is_err());
    }
}
