//! Requests to a daemon that the measurements make.

use crate::error::MeasureError;
use api::client::{Client, ClientError};
use api::{
    Attachment, BoxName, CreateBox, CreateSwitch, HandlerValue, Limits, NameError, Owner, PortRequest,
    RemoveQuery, Ring, Sandbox, SwitchMode, SwitchName, operation,
};
use std::str::FromStr;

/// A box that is to be created.
pub(super) struct NewBox<'a> {
    pub(super) name: &'a str,
    pub(super) owner: Owner,
    /// The switch, and the hardware address there. `None`: its packets go nowhere.
    pub(super) port: Option<(&'a str, &'a str)>,
    pub(super) configuration: String,
    pub(super) ring: Ring,
    pub(super) sandbox: Sandbox,
}

/// Creates a switch that forwards to the addresses of its boxes.
pub(super) fn create_switch(client: &Client, switch: &str, owner: Owner) -> Result<(), MeasureError> {
    let request =
        CreateSwitch { mode: SwitchMode::Static, owner, ..CreateSwitch::new(name::<SwitchName>(switch)?) };
    client.send(&operation::CREATE_SWITCH, &[], &request)?;
    Ok(())
}

/// Creates a box, and starts it.
pub(super) fn create_box(client: &Client, new: NewBox<'_>) -> Result<(), MeasureError> {
    let port = match new.port {
        Some((switch, mac)) => PortRequest {
            attach: Attachment::Switch(name(switch)?),
            mac: mac.parse().ok(),
            limits: Limits::default(),
        },
        None => PortRequest { attach: Attachment::Nothing, mac: None, limits: Limits::default() },
    };
    let request = CreateBox {
        ports: vec![port],
        owner: new.owner,
        ring: new.ring,
        sandbox: new.sandbox,
        ..CreateBox::new(name::<BoxName>(new.name)?, new.configuration)
    };
    client.send(&operation::CREATE_BOX, &[], &request)?;
    Ok(())
}

/// Removes a box.
pub(super) fn remove_box(client: &Client, of: &str) -> Result<(), ClientError> {
    client.call(&operation::REMOVE_BOX, &[of], &RemoveQuery::FORCE, &())
}

/// The value of a handler.
pub(super) fn read(client: &Client, of: &str, handler: &str) -> Result<String, MeasureError> {
    let value: HandlerValue = client.ask(&operation::READ, &[of, handler])?;
    Ok(value.value.text().trim().to_string())
}

/// The value of a handler that is a number.
pub(super) fn number(client: &Client, of: &str, handler: &str) -> Result<u64, MeasureError> {
    let text = read(client, of, handler)?;
    text.parse().map_err(|_| MeasureError::NotANumber(text))
}

pub(super) fn name<T: FromStr<Err = NameError>>(text: &str) -> Result<T, MeasureError> {
    text.parse().map_err(MeasureError::Name)
}
