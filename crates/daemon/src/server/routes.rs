//! Which operation is which method of the supervisor.

use super::metrics::{self, Figures};
use super::request::{Asked, Names, Sent};
use super::respond::{Answer, Refusal, answer, done, wait};
use super::stream::{self, Ending};
use crate::supervisor::Supervisor;
use api::operation;
use api::{
    AddPort, AddressEntry, ApplyQuery, BoxDetail, BoxName, BoxStatus, CaptureQuery, Changes, Check,
    CheckReply, ConfigurationName, ConfigurationStatus, ConfigurationText, CrashReport, CreateBox,
    CreateSwitch, ErrorCode, EventQuery, HandlerArgument, HandlerInfo, HandlerPath, HandlerValue,
    HandlerWrite, HostStatus, Install, LogQuery, Mac, PortName, SetAddress, Stack, StackName, StackStatus,
    SwitchDetail, SwitchName, SwitchPort, SwitchStatus, WrittenFile,
};
use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Json, Router};
use std::time::Duration;

/// What every request has at hand.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) supervisor: Supervisor,
    pub(super) ending: Ending,
}

impl FromRef<Shared> for Supervisor {
    fn from_ref(shared: &Shared) -> Self {
        shared.supervisor.clone()
    }
}

impl FromRef<Shared> for Ending {
    fn from_ref(shared: &Shared) -> Self {
        shared.ending.clone()
    }
}

type Own = State<Supervisor>;
type Done = Result<StatusCode, Refusal>;

/// The route of an operation of the table, by its name.
fn route(name: &str) -> Option<MethodRouter<Shared>> {
    Some(match name {
        "host" => get(host),
        "openapi" => get(openapi),
        "list_boxes" => get(list_boxes),
        "create_box" => post(create_box),
        "show_box" => get(show_box),
        "remove_box" => delete(remove_box),
        "start_box" => post(start_box),
        "stop_box" => post(stop_box),
        "suspend_box" => post(suspend_box),
        "resume_box" => post(resume_box),
        "kill_box" => post(kill_box),
        "restart_box" => post(restart_box),
        "logs" => get(logs),
        "crash" => get(crash),
        "files" => get(files),
        "file" => get(file),
        "show_configuration" => get(show_configuration),
        "install" => put(install),
        "remove_configuration" => delete(remove_configuration),
        "check" => post(check),
        "list_handlers" => get(list_handlers),
        "read_handler" => get(read_handler),
        "ask_handler" => post(ask_handler),
        "write_handler" => put(write_handler),
        "list_switches" => get(list_switches),
        "create_switch" => post(create_switch),
        "show_switch" => get(show_switch),
        "remove_switch" => delete(remove_switch),
        "add_port" => post(add_port),
        "remove_port" => delete(remove_port),
        "list_addresses" => get(list_addresses),
        "set_address" => put(set_address),
        "remove_address" => delete(remove_address),
        "capture" => get(capture),
        "events" => get(events),
        "list_stacks" => get(list_stacks),
        "diff_stack" => post(diff_stack),
        "apply_stack" => put(apply_stack),
        "confirm_stack" => post(confirm_stack),
        "roll_back_stack" => post(roll_back_stack),
        "remove_stack" => delete(remove_stack),
        "metrics" => get(metrics_text),
        _ => return None,
    })
}

/// All routes.
pub(super) fn routes(shared: Shared) -> Router {
    let mut router = Router::new();
    for entry in operation::TABLE {
        if let Some(route) = route(entry.name()) {
            router = router.route(entry.path(), route);
        }
    }
    router.fallback(unknown).method_not_allowed_fallback(unknown).with_state(shared)
}

async fn unknown(method: axum::http::Method, uri: axum::http::Uri) -> Refusal {
    let message = format!("there is no operation {method} {}; GET /v1/openapi.json lists them", uri.path());
    Refusal::new(ErrorCode::NotFound, message)
}

async fn host(State(supervisor): Own) -> Answer<HostStatus> {
    answer(supervisor, Supervisor::host).await
}

async fn openapi() -> Json<serde_json::Value> {
    Json(api::openapi::document())
}

async fn list_boxes(State(supervisor): Own) -> Answer<Vec<BoxStatus>> {
    answer(supervisor, Supervisor::boxes).await
}

async fn create_box(State(supervisor): Own, Sent(request): Sent<CreateBox>) -> Answer<BoxDetail> {
    answer(supervisor, |supervisor| supervisor.create_box(request)).await
}

async fn show_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<BoxDetail> {
    answer(supervisor, move |supervisor| supervisor.show_box(&name)).await
}

async fn remove_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Done {
    done(supervisor, move |supervisor| supervisor.remove_box(&name)).await
}

async fn start_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.start_box(&name)).await
}

async fn stop_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.stop_box(&name)).await
}

async fn suspend_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.suspend_box(&name)).await
}

async fn resume_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.resume_box(&name)).await
}

async fn kill_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.kill_box(&name)).await
}

async fn restart_box(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.restart_box(&name)).await
}

async fn logs(
    State(supervisor): Own,
    State(ending): State<Ending>,
    Names(name): Names<BoxName>,
    Asked(query): Asked<LogQuery>,
) -> Result<Response, Refusal> {
    let follow = wait(supervisor, move |supervisor| supervisor.log(&name, &query)).await?;
    Ok(stream::lines(follow, ending))
}

async fn crash(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<CrashReport> {
    answer(supervisor, move |supervisor| supervisor.crash(&name)).await
}

async fn files(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<Vec<WrittenFile>> {
    answer(supervisor, move |supervisor| supervisor.files(&name)).await
}

async fn file(
    State(supervisor): Own,
    State(ending): State<Ending>,
    Names((name, file)): Names<(BoxName, String)>,
) -> Result<Response, Refusal> {
    let contents = wait(supervisor, move |supervisor| supervisor.file(&name, &file)).await?;
    Ok(stream::contents(contents, ending))
}

type InBox = (BoxName, ConfigurationName);

async fn show_configuration(
    State(supervisor): Own,
    Names((name, configuration)): Names<InBox>,
) -> Answer<ConfigurationText> {
    answer(supervisor, move |supervisor| supervisor.show_configuration(&name, &configuration)).await
}

async fn install(
    State(supervisor): Own,
    Names((name, configuration)): Names<InBox>,
    Sent(request): Sent<Install>,
) -> Answer<ConfigurationStatus> {
    answer(supervisor, move |supervisor| supervisor.install(&name, &configuration, &request)).await
}

async fn remove_configuration(State(supervisor): Own, Names((name, configuration)): Names<InBox>) -> Done {
    done(supervisor, move |supervisor| supervisor.remove_configuration(&name, &configuration)).await
}

async fn check(State(supervisor): Own, Sent(request): Sent<Check>) -> Answer<CheckReply> {
    answer(supervisor, move |supervisor| supervisor.check(&request)).await
}

async fn list_handlers(State(supervisor): Own, Names(name): Names<BoxName>) -> Answer<Vec<HandlerInfo>> {
    answer(supervisor, move |supervisor| supervisor.handlers(&name)).await
}

type OfHandler = (BoxName, String);

fn handler((name, handler): OfHandler) -> Result<HandlerPath, Refusal> {
    HandlerPath::of(name, &handler).map_err(|error| Refusal::new(ErrorCode::Invalid, error.to_string()))
}

async fn read_handler(State(supervisor): Own, Names(names): Names<OfHandler>) -> Answer<HandlerValue> {
    let path = handler(names)?;
    answer(supervisor, move |supervisor| supervisor.read(&path, b"")).await
}

async fn ask_handler(
    State(supervisor): Own,
    Names(names): Names<OfHandler>,
    Sent(request): Sent<HandlerArgument>,
) -> Answer<HandlerValue> {
    let path = handler(names)?;
    answer(supervisor, move |supervisor| supervisor.read(&path, &request.argument.0)).await
}

async fn write_handler(
    State(supervisor): Own,
    Names(names): Names<OfHandler>,
    Sent(request): Sent<HandlerWrite>,
) -> Done {
    let path = handler(names)?;
    done(supervisor, move |supervisor| supervisor.write(&path, &request.value.0)).await
}

async fn list_switches(State(supervisor): Own) -> Answer<Vec<SwitchStatus>> {
    answer(supervisor, Supervisor::switches).await
}

async fn create_switch(State(supervisor): Own, Sent(request): Sent<CreateSwitch>) -> Answer<SwitchDetail> {
    answer(supervisor, |supervisor| supervisor.create_switch(request)).await
}

async fn show_switch(State(supervisor): Own, Names(name): Names<SwitchName>) -> Answer<SwitchDetail> {
    answer(supervisor, move |supervisor| supervisor.show_switch(&name)).await
}

async fn remove_switch(State(supervisor): Own, Names(name): Names<SwitchName>) -> Done {
    done(supervisor, move |supervisor| supervisor.remove_switch(&name)).await
}

async fn add_port(
    State(supervisor): Own,
    Names(name): Names<SwitchName>,
    Sent(request): Sent<AddPort>,
) -> Answer<SwitchPort> {
    answer(supervisor, move |supervisor| supervisor.add_port(&name, &request)).await
}

async fn remove_port(State(supervisor): Own, Names((name, port)): Names<(SwitchName, PortName)>) -> Done {
    done(supervisor, move |supervisor| supervisor.remove_port(&name, &port)).await
}

async fn list_addresses(State(supervisor): Own, Names(name): Names<SwitchName>) -> Answer<Vec<AddressEntry>> {
    answer(supervisor, move |supervisor| supervisor.addresses(&name)).await
}

async fn set_address(
    State(supervisor): Own,
    Names((name, mac)): Names<(SwitchName, Mac)>,
    Sent(request): Sent<SetAddress>,
) -> Done {
    done(supervisor, move |supervisor| supervisor.set_address(&name, mac, &request.port)).await
}

async fn remove_address(State(supervisor): Own, Names((name, mac)): Names<(SwitchName, Mac)>) -> Done {
    done(supervisor, move |supervisor| supervisor.remove_address(&name, mac)).await
}

async fn capture(
    State(supervisor): Own,
    State(ending): State<Ending>,
    Asked(query): Asked<CaptureQuery>,
) -> Result<Response, Refusal> {
    let capture = wait(supervisor, move |supervisor| supervisor.capture(&query)).await?;
    Ok(stream::capture(capture, ending))
}

async fn events(
    State(supervisor): Own,
    State(ending): State<Ending>,
    Asked(query): Asked<EventQuery>,
) -> Response {
    stream::lines(supervisor.events(&query), ending)
}

async fn list_stacks(State(supervisor): Own) -> Answer<Vec<StackStatus>> {
    answer(supervisor, Supervisor::stacks).await
}

async fn diff_stack(
    State(supervisor): Own,
    Names(name): Names<StackName>,
    Sent(request): Sent<Stack>,
) -> Answer<Changes> {
    answer(supervisor, move |supervisor| supervisor.diff_stack(&name, &request)).await
}

async fn apply_stack(
    State(supervisor): Own,
    Names(name): Names<StackName>,
    Asked(query): Asked<ApplyQuery>,
    Sent(request): Sent<Stack>,
) -> Answer<Changes> {
    let time = query.confirm_within.map(|seconds| Duration::from_secs(seconds.into()));
    answer(supervisor, move |supervisor| supervisor.apply_stack_within(&name, request, time)).await
}

async fn confirm_stack(State(supervisor): Own, Names(name): Names<StackName>) -> Done {
    done(supervisor, move |supervisor| supervisor.confirm_stack(&name)).await
}

async fn roll_back_stack(State(supervisor): Own, Names(name): Names<StackName>) -> Answer<Changes> {
    answer(supervisor, move |supervisor| supervisor.roll_back_stack(&name)).await
}

async fn remove_stack(State(supervisor): Own, Names(name): Names<StackName>) -> Answer<Changes> {
    answer(supervisor, move |supervisor| supervisor.remove_stack(&name)).await
}

async fn metrics_text(State(supervisor): Own, headers: HeaderMap) -> Result<Response, Refusal> {
    let figures = wait(supervisor, |supervisor| {
        Ok(Figures {
            host: supervisor.host()?,
            boxes: supervisor.boxes()?,
            switches: supervisor.switches()?,
            capture_lost: supervisor.capture_lost(),
        })
    });
    metrics::respond(&headers, &figures.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_table_has_a_route() {
        for entry in operation::TABLE {
            assert!(route(entry.name()).is_some(), "{}", entry.name());
        }
    }
}
