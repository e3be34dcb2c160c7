//! Maps each operation of the API to a method of the supervisor.

use super::admission::{Connection, Peer};
use super::authorization::RefusalCounts;
use super::files::{Files, image, remove_upload, upload};
use super::gate::{Gate, authorize};
use super::handlers::{ask_handler, list_handlers, read_handler, write_handler};
use super::memory::MemoryPool;
use super::metrics::{self, MetricsInput};
use super::record::RecordNote;
use super::request::{JsonBody, PathNames, QueryParameters};
use super::respond::{ErrorResponse, JsonResult, answer, done, wait};
use super::services::{
    create_chain, create_service, list_chains, list_services, reload_service, remove_chain, remove_service,
    scale_service, set_chain, show_chain, show_service,
};
use super::shutdown::{Shutdown, ShutdownSender};
use super::stacks::{
    apply_stack, confirm_stack, diff_stack, export_stack, list_stacks, remove_stack, roll_back_stack,
};
use super::stream::{self, ShutdownSignal};
use super::uploads::Uploads;
use crate::supervisor::Supervisor;
use api::operation;
use api::{
    AccountQuery, AccountReport, AddFlow, AddPort, AddressEntry, AuditQuery, BoxDetail, BoxName, BoxStatus,
    CaptureQuery, Check, CheckReply, ConfigurationName, ConfigurationStatus, ConfigurationText,
    ControllerEntries, ControllerEntriesQuery, CrashReport, CreateBox, CreateSwitch, DrainStatus, ErrorCode,
    EventQuery, FabricRestart, FlowStatus, HostStatus, Install, LogQuery, MacAddr, Owner, PortName,
    RemoveQuery, RestartQuery, Save, Saved, SetAddress, StopQuery, StopReply, StoreStatus, SwitchDetail,
    SwitchName, SwitchPort, SwitchStatus, Upgrade, UpgradeReply, WrittenFile,
};
use axum::extract::{FromRef, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Extension, Json, Router};
use std::path::PathBuf;
use std::sync::Arc;

/// The state that every request shares.
#[derive(Clone, Debug)]
pub(super) struct ServerState {
    pub(super) supervisor: Supervisor,
    pub(super) ending: ShutdownSignal,
    pub(super) refused: Arc<RefusalCounts>,
    pub(super) shutdown: ShutdownSender,
    pub(super) uploads: Uploads,
    pub(super) memory: MemoryPool,
}

impl FromRef<ServerState> for Uploads {
    fn from_ref(shared: &ServerState) -> Self {
        shared.uploads.clone()
    }
}

impl FromRef<ServerState> for ShutdownSignal {
    fn from_ref(shared: &ServerState) -> Self {
        shared.ending.clone()
    }
}

impl FromRef<ServerState> for Arc<RefusalCounts> {
    fn from_ref(shared: &ServerState) -> Self {
        shared.refused.clone()
    }
}

impl FromRef<ServerState> for ShutdownSender {
    fn from_ref(shared: &ServerState) -> Self {
        shared.shutdown.clone()
    }
}

/// The supervisor as the caller may use it, from [`authorize`].
type SupervisorArg = Extension<Supervisor>;
type EmptyResult = Result<StatusCode, ErrorResponse>;

/// The route of an operation, by its name in the table.
fn route(name: &str) -> Option<MethodRouter<ServerState>> {
    Some(match name {
        "host" => get(host),
        "stop_daemon" => post(stop_daemon),
        "upgrade_daemon" => post(upgrade_daemon),
        "drain_fabric" => put(drain_fabric),
        "undrain_fabric" => delete(undrain_fabric),
        "restart_fabric" => post(restart_fabric),
        "openapi" => get(openapi),
        "upload" => put(upload),
        "image" => get(image),
        "remove_upload" => delete(remove_upload),
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
        "save" => post(save),
        "check" => post(check),
        "list_handlers" => get(list_handlers),
        "read_handler" => get(read_handler),
        "ask_handler" => post(ask_handler),
        "write_handler" => put(write_handler),
        "list_switches" => get(list_switches),
        "create_switch" => post(create_switch),
        "show_switch" => get(show_switch),
        "remove_switch" => delete(remove_switch),
        "share_switch" => put(share_switch),
        "unshare_switch" => delete(unshare_switch),
        "add_port" => post(add_port),
        "remove_port" => delete(remove_port),
        "list_addresses" => get(list_addresses),
        "list_flows" => get(list_flows),
        "list_controller_entries" => get(list_controller_entries),
        "add_flow" => post(add_flow),
        "remove_flow" => delete(remove_flow),
        "list_services" => get(list_services),
        "create_service" => post(create_service),
        "show_service" => get(show_service),
        "scale_service" => put(scale_service),
        "reload_service" => put(reload_service),
        "remove_service" => delete(remove_service),
        "list_chains" => get(list_chains),
        "create_chain" => post(create_chain),
        "show_chain" => get(show_chain),
        "set_chain" => put(set_chain),
        "remove_chain" => delete(remove_chain),
        "set_address" => put(set_address),
        "remove_address" => delete(remove_address),
        "account" => get(account),
        "capture" => get(capture),
        "events" => get(events),
        "audit" => get(audit),
        "list_stacks" => get(list_stacks),
        "diff_stack" => post(diff_stack),
        "apply_stack" => put(apply_stack),
        "confirm_stack" => post(confirm_stack),
        "roll_back_stack" => post(roll_back_stack),
        "export_stack" => get(export_stack),
        "remove_stack" => delete(remove_stack),
        "check_store" => get(check_store),
        "back_store_up" => get(back_store_up),
        "retry_set_aside" => post(retry_set_aside),
        "drop_set_aside" => delete(drop_set_aside),
        "metrics" => get(metrics_text),
        _ => return None,
    })
}

/// All routes.
pub(super) fn routes(shared: ServerState) -> Router {
    let mut router = Router::new();
    for entry in operation::TABLE {
        if let Some(route) = route(entry.name()) {
            let (supervisor, memory) = (shared.supervisor.clone(), shared.memory.clone());
            let gate = Gate { supervisor, operation: *entry, memory };
            router = router.route(entry.path(), route.layer(from_fn_with_state(gate, authorize)));
        }
    }
    router.fallback(unknown).method_not_allowed_fallback(wrong_method).with_state(shared)
}

async fn unknown(method: axum::http::Method, uri: axum::http::Uri) -> ErrorResponse {
    let message = format!("there is no operation {method} {}; GET /v1/openapi.json lists them", uri.path());
    ErrorResponse::new(ErrorCode::NotFound, message)
}

/// The reply to a method that the path has no operation for. Its header `Allow` has the other methods.
async fn wrong_method(method: axum::http::Method, uri: axum::http::Uri) -> Response {
    let message = format!(
        "{} has no operation {method}: the header Allow lists its methods, and GET /v1/openapi.json all operations",
        uri.path()
    );
    let mut response = ErrorResponse::new(ErrorCode::Invalid, message).into_response();
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn host(Extension(supervisor): SupervisorArg) -> JsonResult<HostStatus> {
    answer(supervisor, Supervisor::host).await
}

async fn stop_daemon(
    Extension(supervisor): SupervisorArg,
    State(shutdown): State<ShutdownSender>,
    QueryParameters(query): QueryParameters<StopQuery>,
) -> JsonResult<StopReply> {
    let reply = answer(supervisor, move |supervisor| Ok(supervisor.stop_reply(query.all))).await?;
    // The connection is closed only when the reply is sent.
    shutdown.send(if query.all { Shutdown::All } else { Shutdown::Daemon });
    Ok(reply)
}

async fn upgrade_daemon(
    Extension(supervisor): SupervisorArg,
    State(shutdown): State<ShutdownSender>,
    Extension(connection): Extension<Arc<Connection>>,
    JsonBody(request): JsonBody<Upgrade>,
) -> JsonResult<UpgradeReply> {
    // Whoever has the token may not execute any program as the daemon's user.
    if request.program.is_some() && !matches!(connection.peer, Peer::User(_)) {
        let message = "only a client at the daemon's Unix socket may name the program that replaces it";
        return Err(ErrorResponse::new(ErrorCode::Refused, message));
    }
    let path = request.program.map(PathBuf::from);
    let check = move |supervisor: &Supervisor| supervisor.check_upgrade(path.as_deref());
    let (program, reply) = wait(supervisor, check).await?;
    // The connection is closed only when the reply is sent.
    shutdown.send(Shutdown::Replace(program));
    Ok(Json(reply))
}

async fn drain_fabric(Extension(supervisor): SupervisorArg) -> JsonResult<DrainStatus> {
    answer(supervisor, |supervisor| supervisor.drain_fabric(true)).await
}

async fn undrain_fabric(Extension(supervisor): SupervisorArg) -> JsonResult<DrainStatus> {
    answer(supervisor, |supervisor| supervisor.drain_fabric(false)).await
}

async fn restart_fabric(
    Extension(supervisor): SupervisorArg,
    QueryParameters(query): QueryParameters<RestartQuery>,
) -> JsonResult<FabricRestart> {
    answer(supervisor, move |supervisor| supervisor.restart_fabric(query.force)).await
}

async fn openapi() -> Result<Response, ErrorResponse> {
    let text = api::openapi::text().map_err(|error| {
        ErrorResponse::new(ErrorCode::Internal, format!("this program is damaged: {error}"))
    })?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

async fn list_boxes(Extension(supervisor): SupervisorArg) -> JsonResult<Vec<BoxStatus>> {
    answer(supervisor, Supervisor::boxes).await
}

async fn create_box(
    Extension(supervisor): SupervisorArg,
    Extension(note): Extension<RecordNote>,
    files: Files,
    JsonBody(mut request): JsonBody<CreateBox>,
) -> JsonResult<BoxDetail> {
    note.object("box", &request.name);
    let mut used = files.load(vec![(&mut request.uploads, &mut request.files)]).await?;
    let held = files.load_images(&supervisor, &mut used, vec![&mut request.image]).await?;
    let create = move |supervisor: &Supervisor| {
        let created = supervisor.create_box(request);
        drop(held);
        created
    };
    let created = answer(supervisor, create).await?;
    files.remove_used(used);
    Ok(created)
}

async fn show_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<BoxDetail> {
    answer(supervisor, move |supervisor| supervisor.show_box(&name)).await
}

async fn remove_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
    QueryParameters(query): QueryParameters<RemoveQuery>,
) -> EmptyResult {
    done(supervisor, move |supervisor| match query.force {
        true => supervisor.remove_box(&name),
        false => supervisor.remove_stopped_box(&name),
    })
    .await
}

async fn start_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.start_box(&name)).await
}

async fn stop_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.stop_box(&name)).await
}

async fn suspend_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.suspend_box(&name)).await
}

async fn resume_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.resume_box(&name)).await
}

async fn kill_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.kill_box(&name)).await
}

async fn restart_box(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<BoxStatus> {
    answer(supervisor, move |supervisor| supervisor.restart_box(&name)).await
}

async fn logs(
    Extension(supervisor): SupervisorArg,
    State(ending): State<ShutdownSignal>,
    PathNames(name): PathNames<BoxName>,
    QueryParameters(query): QueryParameters<LogQuery>,
) -> Result<Response, ErrorResponse> {
    let follow = wait(supervisor, move |supervisor| supervisor.log(&name, &query)).await?;
    Ok(stream::lines(follow, ending))
}

async fn crash(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<CrashReport> {
    answer(supervisor, move |supervisor| supervisor.crash(&name)).await
}

async fn files(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<BoxName>,
) -> JsonResult<Vec<WrittenFile>> {
    answer(supervisor, move |supervisor| supervisor.files(&name)).await
}

async fn file(
    Extension(supervisor): SupervisorArg,
    State(ending): State<ShutdownSignal>,
    PathNames((name, file)): PathNames<(BoxName, String)>,
) -> Result<Response, ErrorResponse> {
    let contents = wait(supervisor, move |supervisor| supervisor.file(&name, &file)).await?;
    Ok(stream::contents(contents, ending))
}

type ConfigurationNames = (BoxName, ConfigurationName);

async fn show_configuration(
    Extension(supervisor): SupervisorArg,
    PathNames((name, configuration)): PathNames<ConfigurationNames>,
) -> JsonResult<ConfigurationText> {
    answer(supervisor, move |supervisor| supervisor.show_configuration(&name, &configuration)).await
}

async fn install(
    Extension(supervisor): SupervisorArg,
    PathNames((name, configuration)): PathNames<ConfigurationNames>,
    files: Files,
    JsonBody(mut request): JsonBody<Install>,
) -> JsonResult<ConfigurationStatus> {
    let used = files.load(vec![(&mut request.uploads, &mut request.files)]).await?;
    let install = move |supervisor: &Supervisor| supervisor.install(&name, &configuration, &request);
    let installed = answer(supervisor, install).await?;
    files.remove_used(used);
    Ok(installed)
}

async fn save(
    Extension(supervisor): SupervisorArg,
    PathNames((name, configuration)): PathNames<ConfigurationNames>,
    JsonBody(request): JsonBody<Save>,
) -> JsonResult<Saved> {
    answer(supervisor, move |supervisor| supervisor.save(&name, &configuration, &request)).await
}

async fn remove_configuration(
    Extension(supervisor): SupervisorArg,
    PathNames((name, configuration)): PathNames<ConfigurationNames>,
) -> EmptyResult {
    done(supervisor, move |supervisor| supervisor.remove_configuration(&name, &configuration)).await
}

async fn check(
    Extension(supervisor): SupervisorArg,
    files: Files,
    JsonBody(mut request): JsonBody<Check>,
) -> JsonResult<CheckReply> {
    files.load(vec![(&mut request.uploads, &mut request.files)]).await?;
    answer(supervisor, move |supervisor| supervisor.check(&request)).await
}

async fn list_switches(Extension(supervisor): SupervisorArg) -> JsonResult<Vec<SwitchStatus>> {
    answer(supervisor, Supervisor::switches).await
}

async fn create_switch(
    Extension(supervisor): SupervisorArg,
    Extension(note): Extension<RecordNote>,
    JsonBody(request): JsonBody<CreateSwitch>,
) -> JsonResult<SwitchDetail> {
    note.object("switch", &request.name);
    answer(supervisor, |supervisor| supervisor.create_switch(request)).await
}

async fn show_switch(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<SwitchName>,
) -> JsonResult<SwitchDetail> {
    answer(supervisor, move |supervisor| supervisor.show_switch(&name)).await
}

async fn remove_switch(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<SwitchName>,
    QueryParameters(query): QueryParameters<RemoveQuery>,
) -> EmptyResult {
    done(supervisor, move |supervisor| match query.force {
        true => supervisor.remove_switch(&name),
        false => supervisor.remove_unused_switch(&name),
    })
    .await
}

async fn share_switch(
    Extension(supervisor): SupervisorArg,
    PathNames((name, owner)): PathNames<(SwitchName, Owner)>,
) -> JsonResult<SwitchDetail> {
    answer(supervisor, move |supervisor| supervisor.share_switch(&name, &owner)).await
}

async fn unshare_switch(
    Extension(supervisor): SupervisorArg,
    PathNames((name, owner)): PathNames<(SwitchName, Owner)>,
) -> JsonResult<SwitchDetail> {
    answer(supervisor, move |supervisor| supervisor.unshare_switch(&name, &owner)).await
}

async fn add_port(
    Extension(supervisor): SupervisorArg,
    Extension(note): Extension<RecordNote>,
    PathNames(name): PathNames<SwitchName>,
    JsonBody(request): JsonBody<AddPort>,
) -> JsonResult<SwitchPort> {
    note.detail(format!("port {}", request.name).as_bytes());
    answer(supervisor, move |supervisor| supervisor.add_port(&name, &request)).await
}

async fn remove_port(
    Extension(supervisor): SupervisorArg,
    PathNames((name, port)): PathNames<(SwitchName, PortName)>,
    QueryParameters(query): QueryParameters<RemoveQuery>,
) -> EmptyResult {
    done(supervisor, move |supervisor| match query.force {
        true => supervisor.remove_port(&name, &port),
        false => supervisor.remove_unused_port(&name, &port),
    })
    .await
}

async fn list_addresses(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<SwitchName>,
) -> JsonResult<Vec<AddressEntry>> {
    answer(supervisor, move |supervisor| supervisor.addresses(&name)).await
}

async fn list_flows(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<SwitchName>,
) -> JsonResult<Vec<FlowStatus>> {
    answer(supervisor, move |supervisor| supervisor.flows(&name)).await
}

async fn list_controller_entries(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<SwitchName>,
    QueryParameters(query): QueryParameters<ControllerEntriesQuery>,
) -> JsonResult<ControllerEntries> {
    answer(supervisor, move |supervisor| supervisor.controller_entries(&name, query)).await
}

async fn add_flow(
    Extension(supervisor): SupervisorArg,
    PathNames(name): PathNames<SwitchName>,
    JsonBody(request): JsonBody<AddFlow>,
) -> JsonResult<FlowStatus> {
    answer(supervisor, move |supervisor| supervisor.add_flow(&name, &request)).await
}

async fn remove_flow(
    Extension(supervisor): SupervisorArg,
    PathNames((name, flow)): PathNames<(SwitchName, u64)>,
) -> EmptyResult {
    done(supervisor, move |supervisor| supervisor.remove_flow(&name, flow)).await
}

async fn set_address(
    Extension(supervisor): SupervisorArg,
    PathNames((name, mac)): PathNames<(SwitchName, MacAddr)>,
    JsonBody(request): JsonBody<SetAddress>,
) -> EmptyResult {
    done(supervisor, move |supervisor| supervisor.set_address(&name, mac, &request.port)).await
}

async fn remove_address(
    Extension(supervisor): SupervisorArg,
    PathNames((name, mac)): PathNames<(SwitchName, MacAddr)>,
) -> EmptyResult {
    done(supervisor, move |supervisor| supervisor.remove_address(&name, mac)).await
}

async fn account(
    Extension(supervisor): SupervisorArg,
    QueryParameters(query): QueryParameters<AccountQuery>,
) -> JsonResult<AccountReport> {
    answer(supervisor, move |supervisor| supervisor.account(&query)).await
}

async fn capture(
    Extension(supervisor): SupervisorArg,
    State(ending): State<ShutdownSignal>,
    QueryParameters(query): QueryParameters<CaptureQuery>,
) -> Result<Response, ErrorResponse> {
    let capture = wait(supervisor, move |supervisor| supervisor.capture(&query)).await?;
    Ok(stream::capture(capture, ending))
}

async fn events(
    Extension(supervisor): SupervisorArg,
    State(ending): State<ShutdownSignal>,
    QueryParameters(query): QueryParameters<EventQuery>,
) -> Response {
    stream::lines(supervisor.events(&query), ending)
}

async fn audit(
    Extension(supervisor): SupervisorArg,
    State(ending): State<ShutdownSignal>,
    QueryParameters(query): QueryParameters<AuditQuery>,
) -> Response {
    stream::lines(supervisor.audit(&query), ending)
}

async fn check_store(Extension(supervisor): SupervisorArg) -> JsonResult<StoreStatus> {
    answer(supervisor, Supervisor::check_store).await
}

async fn back_store_up(Extension(supervisor): SupervisorArg) -> Result<Response, ErrorResponse> {
    let copy = wait(supervisor, |supervisor| supervisor.back_store_up()).await?;
    let media = <operation::Bytes as operation::Body>::MEDIA.unwrap_or_default();
    Ok(([(CONTENT_TYPE, media)], copy).into_response())
}

async fn retry_set_aside(
    Extension(supervisor): SupervisorArg,
    PathNames(entry): PathNames<i64>,
) -> EmptyResult {
    done(supervisor, move |supervisor| supervisor.retry_set_aside(entry)).await
}

async fn drop_set_aside(
    Extension(supervisor): SupervisorArg,
    PathNames(entry): PathNames<i64>,
) -> EmptyResult {
    done(supervisor, move |supervisor| supervisor.drop_set_aside(entry)).await
}

async fn metrics_text(
    Extension(supervisor): SupervisorArg,
    State(refused): State<Arc<RefusalCounts>>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    let figures = wait(supervisor, move |supervisor| {
        // What concerns all owners is for administrators.
        let is_administrator = supervisor.is_administrator();
        let refused = if is_administrator { refused } else { Arc::default() };
        Ok(MetricsInput {
            host: supervisor.host()?,
            boxes: supervisor.boxes()?,
            switches: supervisor.switches()?,
            ports: supervisor.port_figures()?,
            services: supervisor.services()?,
            chains: supervisor.chains()?,
            capture_lost: if is_administrator { supervisor.capture_lost()? } else { 0 },
            refused,
        })
    });
    metrics::respond(&headers, &figures.await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Caller, User};
    use crate::settings::Settings;
    use crate::thread_fabric::ThreadFabric;
    use api::operation::Entry;
    use api::{AuditEntry, Quota, Right, Stack};
    use axum::body::{Body, to_bytes};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use std::collections::BTreeSet;
    use tokio::sync::watch;

    #[test]
    fn every_operation_of_the_table_has_a_route() {
        for entry in operation::TABLE {
            assert!(route(entry.name()).is_some(), "{}", entry.name());
        }
    }

    fn state(supervisor: Supervisor, ending: ShutdownSignal, shutdown: ShutdownSender) -> ServerState {
        let (uploads, memory) = (Uploads::new(None), MemoryPool::default());
        ServerState { supervisor, ending, refused: Arc::default(), shutdown, uploads, memory }
    }

    fn user(owner: &str, rights: &[Right]) -> Caller {
        Caller::User(Arc::new(User {
            name: "somebody".parse().unwrap(),
            owner: owner.parse().unwrap(),
            rights: rights.iter().copied().collect(),
            quota: Quota::default(),
        }))
    }

    /// The status of a response, and its text.
    async fn send(
        shared: &ServerState,
        caller: Option<Caller>,
        entry: &dyn Entry,
        object: &str,
    ) -> (u16, String) {
        let mut path = entry.path().to_string();
        for parameter in ["{box}", "{switch}", "{stack}", "{service}", "{upload}"] {
            path = path.replace(parameter, object);
        }
        path = path.replace("{configuration}", "main").replace("{file}", "f").replace("{port}", "p");
        path = path.replace("{owner}", "carol").replace("{chain}", "c");
        path = path.replace("{handler}", "e.h").replace("{mac}", "02:00:00:00:00:01").replace("{entry}", "1");
        if entry.name() == "capture" {
            path = format!("{path}?port={object}/p");
        }
        let mut request = axum::http::Request::builder().method(entry.method().name()).uri(path);
        if let Some(caller) = caller {
            request = request.extension(caller);
        }
        let service = TowerToHyperService::new(routes(shared.clone()));
        let response = service.call(request.body(Body::from("{}")).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let streams = ["logs", "events", "audit", "capture"].contains(&entry.name()) && status == 200;
        let text =
            if streams { Default::default() } else { to_bytes(response.into_body(), 1 << 20).await.unwrap() };
        (status, String::from_utf8_lossy(&text).into_owned())
    }

    /// Who changed what, with refusals, and nothing that only reads.
    #[tokio::test(flavor = "multi_thread")]
    async fn changes_are_recorded_with_their_callers() {
        let start =
            || Supervisor::start(&Settings::new(ThreadFabric::new(image::PROBE, 1), "probe")).unwrap();
        let supervisor = tokio::task::spawn_blocking(start).await.unwrap();
        let (_end, ending) = watch::channel(false);
        let (shutdown, _requested) = ShutdownSender::channel();
        let shared = state(supervisor.clone(), ending, shutdown);
        let entry = |name: &str| *operation::TABLE.iter().find(|entry| entry.name() == name).unwrap();
        let all = Right::OF_TOKENS;
        for (name, caller) in [
            ("apply_stack", user("alice", &all)),
            ("list_boxes", user("alice", &all)),
            ("write_handler", user("alice", &all)),
            ("remove_switch", user("bob", &[Right::Read])),
            ("remove_stack", Caller::Administrator),
        ] {
            send(&shared, Some(caller), entry(name), "edge").await;
        }
        let mut reader = supervisor.audit(&AuditQuery::default());
        let entries = reader.next().await.unwrap();
        let shown: Vec<String> = entries
            .iter()
            .map(|entry| {
                let owner = entry.owner.as_ref().map_or("-", |owner| owner.as_str());
                let AuditEntry { user, operation, object, detail, result, .. } = entry;
                format!("{user} {owner} {operation} {object} [{detail}] {result}")
            })
            .collect();
        assert_eq!(
            shown,
            [
                "somebody alice apply_stack stack/edge [] done",
                "somebody alice write_handler box/edge [handler e.h] not_found",
                "somebody bob remove_switch switch/edge [] denied",
                "administrator - remove_stack stack/edge [] done",
            ]
        );
        assert_eq!(entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    /// A token gives its rights only, and only to objects of its owner.
    #[tokio::test(flavor = "multi_thread")]
    async fn every_operation_needs_its_right_and_own_objects() {
        let supervisor = tokio::task::spawn_blocking(|| {
            let supervisor =
                Supervisor::start(&Settings::new(ThreadFabric::new(image::PROBE, 1), "probe")).unwrap();
            let owner: Owner = "bob".parse().unwrap();
            let switch =
                CreateSwitch { owner: owner.clone(), ..CreateSwitch::new("theirs".parse().unwrap()) };
            supervisor.create_switch(switch).unwrap();
            let created = CreateBox {
                owner: owner.clone(),
                start: false,
                ..CreateBox::new("theirs".parse().unwrap(), "drop")
            };
            supervisor.create_box(created).unwrap();
            supervisor.apply_stack(&"theirs".parse().unwrap(), Stack { owner, ..Stack::default() }).unwrap();
            supervisor
        });
        let supervisor = supervisor.await.unwrap();
        let (_end, ending) = watch::channel(false);
        let (shutdown, _requested) = ShutdownSender::channel();
        let shared = state(supervisor, ending, shutdown);
        let all = [Right::Read, Right::Operate, Right::Create];
        let mut seen = BTreeSet::new();
        for entry in operation::TABLE {
            seen.insert(entry.right());
            let name = entry.name();
            // Nobody: the server forgot to say who calls.
            assert_eq!(send(&shared, None, *entry, "theirs").await.0, 500, "{name}");
            // All rights but the one that is needed.
            let others: Vec<Right> = all.into_iter().filter(|right| *right != entry.right()).collect();
            let (status, text) = send(&shared, Some(user("bob", &others)), *entry, "theirs").await;
            assert_eq!((status, text.contains("no_right")), (403, true), "{name}: {text}");
            if entry.right() == Right::Administer {
                continue;
            }
            // Another owner's objects are as if they were not there.
            let alice = || Some(user("alice", &all));
            if ["{box}", "{switch}", "{stack}", "{service}"].iter().any(|kind| entry.path().contains(kind))
                || name == "capture"
            {
                let theirs = send(&shared, alice(), *entry, "theirs").await;
                if ["apply_stack", "diff_stack"].contains(&name) {
                    assert_eq!(theirs.0, 409, "{name}: {}", theirs.1);
                    assert!(theirs.1.contains("a stack named theirs already exists"), "{}", theirs.1);
                    continue;
                }
                let missing = send(&shared, alice(), *entry, "nothing").await;
                assert_eq!(theirs, (missing.0, missing.1.replace("nothing", "theirs")), "{name}");
                assert_eq!(theirs.0, 404, "{name}: {}", theirs.1);
            } else {
                let (_, text) = send(&shared, alice(), *entry, "theirs").await;
                assert!(!text.contains("theirs") && !text.contains("bob"), "{name}: {text}");
            }
        }
        assert_eq!(seen.len(), 4);
        for name in ["list_boxes", "list_switches", "list_stacks", "metrics"] {
            let entry = *operation::TABLE.iter().find(|entry| entry.name() == name).unwrap();
            let (_, text) = send(&shared, Some(user("bob", &all)), entry, "").await;
            assert!(text.contains("theirs"), "{name}: {text}");
        }
    }
}
