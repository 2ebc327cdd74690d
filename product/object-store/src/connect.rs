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
use url::Url;

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

/// The variable of S3 alone. It wins over the one of all services.
const S3_ENDPOINT: &str = "AWS_ENDPOINT_URL_S3";

/// Texts that become parts of a request.
const HEADER_TEXTS: [(&str, AmazonS3ConfigKey); 4] = [
    ("access key id", AmazonS3ConfigKey::AccessKeyId),
    ("secret access key", AmazonS3ConfigKey::SecretAccessKey),
    ("session token", AmazonS3ConfigKey::Token),
    ("region", AmazonS3ConfigKey::Region),
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
    if let Some(endpoint) = &options.endpoint {
        check_endpoint(url, "--endpoint", endpoint)?;
    }
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
    if let Some(name) = variables.get("AWS_PROFILE").filter(|name| is_missing(name, &profile)) {
        let why = format!(
            "no file of the AWS command line has the profile '{name}' of AWS_PROFILE; correct the name, or unset it"
        );
        return Err(StoreError::Settings { url: url.to_owned(), why });
    }
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(NO_RETRIES);
    let is_set =
        |(name, value): &(&String, &String)| name.starts_with("AWS_") && *name != S3_ENDPOINT && !value.is_empty();
    for (name, value) in variables.iter().filter(is_set) {
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
    let of_service = variables.get(S3_ENDPOINT).filter(|value| !value.is_empty()).cloned();
    let endpoints = [
        ("--endpoint", options.endpoint.clone()),
        (S3_ENDPOINT, of_service),
        ("AWS_ENDPOINT_URL", known(&builder, AmazonS3ConfigKey::Endpoint)),
        ("endpoint_url of the profile", profile.get("endpoint_url").map(str::to_owned)),
    ];
    let named = endpoints.into_iter().find_map(|(name, endpoint)| Some((name, endpoint?)));
    if let Some((name, endpoint)) = &named {
        check_endpoint(url, name, endpoint)?;
        builder = builder.with_endpoint(endpoint);
    }
    let endpoint = named.map(|(_, endpoint)| endpoint);
    for (name, key) in HEADER_TEXTS {
        let has_control = known(&builder, key).is_some_and(|text| text.chars().any(|it| it.is_control() || it == ' '));
        if has_control {
            let why = format!("the {name} has a blank, a line break or another control character; write it without");
            return Err(StoreError::Settings { url: url.to_owned(), why });
        }
    }
    // A connection with TLS checks each byte, so the signature need not cover the body: its hash takes 30 % of a
    // writer's processor time.
    if !has("AWS_UNSIGNED_PAYLOAD") {
        builder = builder.with_unsigned_payload(!is_plain(endpoint.as_deref()));
    }
    // Objects are removed one by one: not every store has the request for many, and a sweep is in no hurry.
    Ok(builder.with_disable_bulk_delete(true).with_client_options(client(endpoint.as_deref())))
}

/// Whether a profile was named and no file has it. The usual one may be absent.
fn is_missing(name: &str, profile: &Profile) -> bool {
    !["", "default"].contains(&name) && !profile.is_there()
}

/// Refuses a text that is no address of a server. The libraries below take any text, and fail at the first request.
fn check_endpoint(url: &str, name: &str, endpoint: &str) -> Result<(), StoreError> {
    let parsed = Url::parse(endpoint).ok();
    let is_server = |parsed: &Url| {
        let is_web = ["http", "https"].contains(&parsed.scheme()) && parsed.has_host();
        is_web && parsed.query().is_none() && parsed.fragment().is_none()
    };
    let is_plain_text = !endpoint.chars().any(|it| it.is_control() || it.is_whitespace());
    if is_plain_text && endpoint.contains("://") && parsed.is_some_and(|parsed| is_server(&parsed)) {
        return Ok(());
    }
    let why = format!(
        "{name}: '{}' is no address of a server; write http:// or https://, a host, and perhaps a port",
        endpoint.escape_debug()
    );
    Err(StoreError::Settings { url: url.to_owned(), why })
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
