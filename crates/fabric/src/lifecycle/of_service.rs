//! What a box knows as an instance of a service.

use boundary::Request;
use protocol::fabric::Configuration;

/// What a configuration may send packets to, and the variables that its service defines, as a box reads them.
pub(super) struct OfService {
    destinations: String,
    parameters: String,
}

impl OfService {
    pub(super) fn new(configuration: &Configuration) -> Self {
        let lines = |lines: Vec<String>| lines.join("\n");
        let parameters = configuration.parameters.iter();
        Self {
            destinations: lines(configuration.destinations.iter().map(ToString::to_string).collect()),
            parameters: lines(parameters.map(|(name, value)| format!("{name}={value}")).collect()),
        }
    }

    /// The requests that tell it to a box: none if it is no instance.
    pub(super) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        let destinations = (!self.destinations.is_empty()).then_some(&self.destinations);
        let destinations = destinations.map(|names| Request::Destinations { names });
        let parameters = (!self.parameters.is_empty()).then_some(&self.parameters);
        destinations.into_iter().chain(parameters.map(|values| Request::Parameters { values }))
    }
}
