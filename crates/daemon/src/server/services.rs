//! The operations on services and chains.

use super::files::Files;
use super::record::RecordNote;
use super::request::{JsonBody, PathNames, QueryParameters};
use super::respond::{ErrorResponse, JsonResult, answer, done};
use crate::supervisor::{Supervisor, check_instance_names};
use api::{
    ChainDetail, ChainName, CreateChain, CreateService, Install, RemoveQuery, ScaleService, ServiceName,
    ServiceStatus, SwitchName,
};
use axum::Extension;
use axum::http::StatusCode;

pub(super) async fn list_services(
    Extension(supervisor): Extension<Supervisor>,
) -> JsonResult<Vec<ServiceStatus>> {
    answer(supervisor, Supervisor::services).await
}

pub(super) async fn create_service(
    Extension(supervisor): Extension<Supervisor>,
    Extension(note): Extension<RecordNote>,
    files: Files,
    JsonBody(mut request): JsonBody<CreateService>,
) -> JsonResult<ServiceStatus> {
    note.object("service", &request.name);
    let instance = &mut request.instance;
    let mut used = files.load(vec![(&mut instance.uploads, &mut instance.files)]).await?;
    let held = files.load_images(&supervisor, &mut used, vec![&mut instance.image]).await?;
    let create = move |supervisor: &Supervisor| {
        let created = check_instance_names(std::slice::from_ref(&request))
            .map_err(Into::into)
            .and_then(|()| supervisor.create_service(request));
        drop(held);
        created
    };
    let created = answer(supervisor, create).await?;
    files.remove_used(used);
    Ok(created)
}

pub(super) async fn show_service(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<ServiceName>,
) -> JsonResult<ServiceStatus> {
    answer(supervisor, move |supervisor| supervisor.show_service(&name)).await
}

pub(super) async fn scale_service(
    Extension(supervisor): Extension<Supervisor>,
    Extension(note): Extension<RecordNote>,
    PathNames(name): PathNames<ServiceName>,
    JsonBody(request): JsonBody<ScaleService>,
) -> JsonResult<ServiceStatus> {
    let wanted = match (request.replicas, request.auto) {
        (_, Some(range)) => format!("{range} replicas"),
        (replicas, None) => format!("{} replicas", replicas.unwrap_or(0)),
    };
    note.detail(wanted.as_bytes());
    answer(supervisor, move |supervisor| supervisor.scale_service(&name, request)).await
}

pub(super) async fn reload_service(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<ServiceName>,
    files: Files,
    JsonBody(mut request): JsonBody<Install>,
) -> JsonResult<ServiceStatus> {
    let used = files.load(vec![(&mut request.uploads, &mut request.files)]).await?;
    let reload = move |supervisor: &Supervisor| supervisor.reload_service(&name, &request);
    let reloaded = answer(supervisor, reload).await?;
    files.remove_used(used);
    Ok(reloaded)
}

pub(super) async fn remove_service(
    Extension(supervisor): Extension<Supervisor>,
    PathNames(name): PathNames<ServiceName>,
    QueryParameters(query): QueryParameters<RemoveQuery>,
) -> Result<StatusCode, ErrorResponse> {
    done(supervisor, move |supervisor| match query.force {
        true => supervisor.remove_service(&name),
        false => supervisor.remove_unused_service(&name),
    })
    .await
}

pub(super) async fn list_chains(
    Extension(supervisor): Extension<Supervisor>,
) -> JsonResult<Vec<ChainDetail>> {
    answer(supervisor, Supervisor::chains).await
}

pub(super) async fn create_chain(
    Extension(supervisor): Extension<Supervisor>,
    Extension(note): Extension<RecordNote>,
    JsonBody(request): JsonBody<CreateChain>,
) -> JsonResult<ChainDetail> {
    note.object("chain", format!("{}/{}", request.switch, request.name));
    answer(supervisor, |supervisor| supervisor.create_chain(request)).await
}

pub(super) async fn show_chain(
    Extension(supervisor): Extension<Supervisor>,
    PathNames((switch, chain)): PathNames<(SwitchName, ChainName)>,
) -> JsonResult<ChainDetail> {
    answer(supervisor, move |supervisor| supervisor.show_chain(&switch, &chain)).await
}

pub(super) async fn set_chain(
    Extension(supervisor): Extension<Supervisor>,
    PathNames((switch, chain)): PathNames<(SwitchName, ChainName)>,
    JsonBody(request): JsonBody<CreateChain>,
) -> JsonResult<ChainDetail> {
    answer(supervisor, move |supervisor| supervisor.set_chain(&switch, &chain, request)).await
}

pub(super) async fn remove_chain(
    Extension(supervisor): Extension<Supervisor>,
    PathNames((switch, chain)): PathNames<(SwitchName, ChainName)>,
    QueryParameters(query): QueryParameters<RemoveQuery>,
) -> Result<StatusCode, ErrorResponse> {
    done(supervisor, move |supervisor| match query.force {
        true => supervisor.remove_chain(&switch, &chain),
        false => supervisor.remove_unused_chain(&switch, &chain),
    })
    .await
}
