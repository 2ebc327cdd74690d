//! Connections to stores.
//!
//! Owns: keys and endpoints of each kind of store.
//! Does not own: the first request (`probe`), HTTP itself (`transport`), when keys are read again (`keys`).
//! Invariants: variables win over files. The connection repeats no request: the layers above do.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::address::{Address, StoreAddress};
use crate::error::StoreError;
use crate::failure::chain;
use crate::keys::FreshKeys;
use crate::options::{Keys, Options};
use crate::private::Private;
use crate::profile::{Profile, Variables};
use crate::transport::Transport;

/// Variables that lead to keys. With one of them, the files are not asked.
const KEYS_ELSEWHERE: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

const NO_RETRIES: RetryConfig = RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, backoff: BACKOFF };
const BACKOFF: BackoffConfig = BackoffConfig { init_backoff: Duration::ZERO, max_backoff: Duration::ZERO, base: 1.0 };

/// Connects to the place of an address.
pub(crate) fn connect(
    url: &str,
    address: &Address,
    options: &Options,
    variables: &Variables,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    // A process has one source of cryptography; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = |error: object_store::Error| StoreError::Settings { url: url.to_owned(), why: chain(&error) };
    let (transport, options) = (Transport { doubt: Arc::default() }, options.clone());
    Ok(match &address.place {
        StoreAddress::S3 { bucket } => {
            let builder = s3(url, bucket, &options, variables)?.with_http_connector(transport.clone());
            let first = Arc::clone(builder.clone().build().map_err(settings)?.credentials());
            let (url, bucket, variables, doubt) =
                (url.to_owned(), bucket.clone(), variables.clone(), Arc::clone(&transport.doubt));
            let keys = FreshKeys::new(&doubt, first, move || {
                let builder = s3(&url, &bucket, &options, &variables).map_err(|error| unread(Box::new(error)))?;
                Ok(Arc::clone(builder.with_http_connector(transport.clone()).build()?.credentials()))
            });
            Arc::new(builder.with_credentials(keys).build().map_err(settings)?)
        }
        StoreAddress::Google { bucket } => {
            let builder = google(bucket, &options).with_http_connector(transport.clone());
            let first = Arc::clone(builder.clone().build().map_err(settings)?.credentials());
            let (bucket, doubt) = (bucket.clone(), Arc::clone(&transport.doubt));
            let keys = FreshKeys::new(&doubt, first, move || {
                let builder = google(&bucket, &options).with_http_connector(transport.clone());
                Ok(Arc::clone(builder.build()?.credentials()))
            });
            Arc::new(builder.with_credentials(keys).build().map_err(settings)?)
        }
        StoreAddress::Azure { container } => {
            let builder = azure(container, &options).with_http_connector(transport.clone());
            let first = Arc::clone(builder.clone().build().map_err(settings)?.credentials());
            let (container, doubt) = (container.clone(), Arc::clone(&transport.doubt));
            let keys = FreshKeys::new(&doubt, first, move || {
                let builder = azure(&container, &options).with_http_connector(transport.clone());
                Ok(Arc::clone(builder.build()?.credentials()))
            });
            Arc::new(builder.with_credentials(keys).build().map_err(settings)?)
        }
        StoreAddress::Directory(directory) => {
            let store = LocalFileSystem::new_with_prefix(directory).map_err(settings)?;
            Arc::new(Private::new(store.with_fsync(true), directory).map_err(settings)?)
        }
        StoreAddress::Memory => Arc::new(InMemory::new()),
    })
}

/// The sources of keys cannot be read.
fn unread(source: Box<StoreError>) -> object_store::Error {
    object_store::Error::Generic { store: "keys", source }
}

fn google(bucket: &str, options: &Options) -> GoogleCloudStorageBuilder {
    let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(NO_RETRIES);
    let builder = builder.with_client_options(client(options.endpoint.as_deref()));
    match &options.endpoint {
        Some(endpoint) => builder.with_base_url(endpoint),
        None => builder,
    }
}

fn azure(container: &str, options: &Options) -> MicrosoftAzureBuilder {
    let builder = MicrosoftAzureBuilder::from_env().with_container_name(container).with_retry(NO_RETRIES);
    let builder = builder.with_client_options(client(options.endpoint.as_deref()));
    let builder = match &options.endpoint {
        Some(endpoint) => builder.with_endpoint(endpoint.clone()),
        None => builder,
    };
    match &options.keys {
        Some(Keys { id, secret }) => builder.with_account(id).with_access_key(secret),
        None => builder,
    }
}

fn s3(url: &str, bucket: &str, options: &Options, variables: &Variables) -> Result<AmazonS3Builder, StoreError> {
    let profile = Profile::read(variables);
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(NO_RETRIES);
    for (name, value) in variables.iter().filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty()) {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    let has = |name: &str| variables.get(name).is_some_and(|value| !value.is_empty());
    if let Some(Keys { id, secret }) = &options.keys {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
    } else if !KEYS_ELSEWHERE.into_iter().any(has) {
        if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            if let Some(token) = profile.get("aws_session_token") {
                builder = builder.with_token(token);
            }
        } else if profile.get("credential_process").is_some() || profile.get("sso_start_url").is_some() {
            let why = "the profile gets its keys from another program; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
            return Err(StoreError::Settings { url: url.to_owned(), why: why.to_owned() });
        }
    }
    let known = |builder: &AmazonS3Builder, key| builder.get_config_value(&key);
    if known(&builder, AmazonS3ConfigKey::Region).is_none()
        && let Some(region) =
            known(&builder, AmazonS3ConfigKey::DefaultRegion).or(profile.get("region").map(str::to_owned))
    {
        builder = builder.with_region(region);
    }
    let endpoint = options.endpoint.clone().or_else(|| known(&builder, AmazonS3ConfigKey::Endpoint));
    let endpoint = endpoint.or_else(|| profile.get("endpoint_url").map(str::to_owned));
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    // A connection with TLS checks each byte, so the signature need not cover the body: its hash takes 30 % of a
    // writer's processor time.
    if !has("AWS_UNSIGNED_PAYLOAD") {
        builder = builder.with_unsigned_payload(!is_plain(endpoint.as_deref()));
    }
    // Objects are removed one by one: not every store has the request for many, and a sweep is in no hurry.
    Ok(builder.with_disable_bulk_delete(true).with_client_options(client(endpoint.as_deref())))
}

/// Whether requests go without TLS.
fn is_plain(endpoint: Option<&str>) -> bool {
    endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
}

fn client(endpoint: Option<&str>) -> ClientOptions {
    ClientOptions::new().with_allow_http(is_plain(endpoint))
}

#[cfg(test)]
mod tests;
