//! Connections to stores.
//!
//! Owns: keys and endpoints of Google's and Azure's stores, the connection of each kind.
//! Does not own: those of S3 (`s3`), the first request (`probe`), HTTP itself and when keys are
//! read again (`transport`).
//! Invariants: options win over variables. A text about keys or addresses is used, or refused with the reason. The
//! connection repeats no request: the layers above do.

use std::sync::Arc;
use std::time::Duration;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};

use crate::address::{Address, StoreAddress};
use crate::directory::Private;
use crate::error::StoreError;
use crate::failure::chain;
use crate::options::{Keys, Options, check_endpoint, client};
use crate::profile::{Variables, check_proxies};
use crate::s3::{certificates, no_effect, s3};
use crate::transport::{FreshKeys, Transport};

const NO_RETRIES: RetryConfig = RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, backoff: BACKOFF };
const BACKOFF: BackoffConfig = BackoffConfig { init_backoff: Duration::ZERO, max_backoff: Duration::ZERO, base: 1.0 };

/// Connects to the location of an address.
pub(crate) fn connect(
    url: &str,
    address: &Address,
    options: &Options,
    variables: &Variables,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    // A process has one source of cryptography; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let wrong = |why: String| StoreError::Settings { url: url.to_owned(), why };
    let settings = |error: object_store::Error| wrong(chain(&error));
    if let Some(endpoint) = &options.endpoint {
        check_endpoint("--endpoint", endpoint).map_err(wrong)?;
    }
    if !matches!(address.store, StoreAddress::Directory(_) | StoreAddress::Memory) {
        check_proxies(variables).map_err(wrong)?;
    }
    let certificates = match address.store {
        StoreAddress::S3 { .. } => certificates(variables).map_err(wrong)?,
        _ => Vec::new(),
    };
    let transport = Transport { doubt: Arc::default(), certificates };
    let doubt = Arc::clone(&transport.doubt);
    let (options, variables) = (options.clone(), variables.clone());
    Ok(match &address.store {
        StoreAddress::S3 { bucket } => {
            let built = built(bucket, options, variables, move |bucket, options, variables| {
                s3(bucket, options, variables)
                    .map(|it| it.with_retry(NO_RETRIES).with_http_connector(transport.clone()))
            });
            let first = Arc::clone(built().map_err(wrong)?.build().map_err(settings)?.credentials());
            let builder = built().map_err(wrong)?;
            let keys =
                FreshKeys::new(&doubt, first, move || Ok(Arc::clone(built().map_err(unread)?.build()?.credentials())));
            Arc::new(builder.with_credentials(keys).build().map_err(settings)?)
        }
        StoreAddress::Google { bucket } => {
            let built = built(bucket, options, variables, move |bucket, options, variables| {
                google(bucket, options, variables).map(|it| it.with_http_connector(transport.clone()))
            });
            let first = Arc::clone(built().map_err(wrong)?.build().map_err(settings)?.credentials());
            let builder = built().map_err(wrong)?;
            let keys =
                FreshKeys::new(&doubt, first, move || Ok(Arc::clone(built().map_err(unread)?.build()?.credentials())));
            Arc::new(builder.with_credentials(keys).build().map_err(settings)?)
        }
        StoreAddress::Azure { container } => {
            let built = built(container, options, variables, move |container, options, variables| {
                azure(container, options, variables).map(|it| it.with_http_connector(transport.clone()))
            });
            let first = Arc::clone(built().map_err(wrong)?.build().map_err(settings)?.credentials());
            let builder = built().map_err(wrong)?;
            let keys =
                FreshKeys::new(&doubt, first, move || Ok(Arc::clone(built().map_err(unread)?.build()?.credentials())));
            Arc::new(builder.with_credentials(keys).build().map_err(settings)?)
        }
        StoreAddress::Directory(directory) => {
            let store = LocalFileSystem::new_with_prefix(directory).map_err(settings)?;
            Arc::new(Private::new(store.with_fsync(true), directory).map_err(settings)?)
        }
        StoreAddress::Memory => Arc::new(InMemory::new()),
    })
}

/// The settings of a connection, read again at each call.
fn built<B, F: Fn(&str, &Options, &Variables) -> Result<B, String>>(
    bucket: &str,
    options: Options,
    variables: Variables,
    build: F,
) -> impl Fn() -> Result<B, String> + use<B, F> {
    let bucket = bucket.to_owned();
    move || build(&bucket, &options, &variables)
}

/// The sources of keys cannot be read.
fn unread(why: String) -> object_store::Error {
    object_store::Error::Generic { store: "keys", source: why.into() }
}

fn google(bucket: &str, options: &Options, variables: &Variables) -> Result<GoogleCloudStorageBuilder, String> {
    let mut builder = GoogleCloudStorageBuilder::new().with_retry(NO_RETRIES);
    for (name, value) in of_cloud(variables, &["GOOGLE_", "SERVICE_ACCOUNT"]) {
        match name.to_ascii_lowercase().parse::<GoogleConfigKey>() {
            Ok(GoogleConfigKey::Client(ClientConfigKey::AllowHttp)) | Err(_) => {}
            Ok(GoogleConfigKey::Client(_)) => return Err(no_effect(name)),
            Ok(key) => builder = builder.with_config(key, value),
        }
    }
    let named = [("--endpoint", options.endpoint.clone()), ("GOOGLE_BASE_URL", get(variables, "GOOGLE_BASE_URL"))];
    let endpoint = chosen(named)?;
    let builder = builder.with_bucket_name(bucket).with_client_options(client(endpoint.as_deref()));
    Ok(match endpoint {
        Some(endpoint) => builder.with_base_url(&endpoint),
        None => builder,
    })
}

fn azure(container: &str, options: &Options, variables: &Variables) -> Result<MicrosoftAzureBuilder, String> {
    let mut builder = MicrosoftAzureBuilder::new().with_retry(NO_RETRIES);
    // Two names of Azure's own command line, which others win over.
    if let Some(account) = get(variables, "AZURE_STORAGE_ACCOUNT") {
        builder = builder.with_account(account);
    }
    if let Some(key) = get(variables, "AZURE_STORAGE_KEY") {
        builder = builder.with_access_key(key);
    }
    for (name, value) in of_cloud(variables, &["AZURE_", "IDENTITY_ENDPOINT"]) {
        match name.to_ascii_lowercase().parse::<AzureConfigKey>() {
            Ok(AzureConfigKey::Client(ClientConfigKey::AllowHttp)) | Err(_) => {}
            Ok(AzureConfigKey::Client(_)) => return Err(no_effect(name)),
            Ok(key) => builder = builder.with_config(key, value),
        }
    }
    let named = ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"].map(|name| (name, get(variables, name)));
    let endpoint = chosen([("--endpoint", options.endpoint.clone())].into_iter().chain(named))?;
    builder = builder.with_container_name(container).with_client_options(client(endpoint.as_deref()));
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(Keys { id, secret }) = &options.keys {
        builder = builder.with_account(id).with_access_key(secret);
    }
    let known = |key| builder.get_config_value(&key);
    let is_emulator = known(AzureConfigKey::UseEmulator).is_some_and(|value| value == "true");
    if known(AzureConfigKey::AccountName).is_none() && !is_emulator {
        let why = match get(variables, "AZURE_STORAGE_CONNECTION_STRING") {
            Some(_) => "AZURE_STORAGE_CONNECTION_STRING is not read",
            None => "the address names a container and no account",
        };
        return Err(format!("{why}; set AZURE_STORAGE_ACCOUNT_NAME, and AZURE_STORAGE_ACCOUNT_KEY for a key"));
    }
    Ok(builder)
}

/// The variables of a cloud that have a value.
fn of_cloud<'a>(
    variables: &'a Variables,
    beginnings: &'static [&'static str],
) -> impl Iterator<Item = (&'a String, &'a String)> {
    let is_of_cloud = |name: &str| beginnings.iter().any(|beginning| name.starts_with(beginning));
    variables.iter().filter(move |(name, value)| is_of_cloud(name) && !value.is_empty())
}

fn get(variables: &Variables, name: &str) -> Option<String> {
    variables.get(name).filter(|value| !value.is_empty()).cloned()
}

/// The first address that is named. It is one of a server, or refused.
fn chosen<'a>(named: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Result<Option<String>, String> {
    let Some((name, endpoint)) = named.into_iter().find_map(|(name, endpoint)| Some((name, endpoint?))) else {
        return Ok(None);
    };
    check_endpoint(name, &endpoint)?;
    Ok(Some(endpoint))
}

#[cfg(test)]
mod tests;
