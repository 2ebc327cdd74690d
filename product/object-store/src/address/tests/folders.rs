use object_store::path::Path;

use super::super::{LOG, MANIFESTS, TABLES, is_data, is_in, is_record};

#[test]
fn an_object_is_known_by_its_folder_below_any_prefix() {
    for prefix in ["", "home/", "records/", "data/records/", "a/data/b/", "wal/compacted/", "gc/", "records/manifest/"]
    {
        let of = |name: &str| Path::from(format!("{prefix}{name}"));
        let kinds = |name: &str| (is_data(&of(name)), is_record(&of(name)));
        assert_eq!(kinds("data/00/12ab"), (true, false), "{prefix}");
        for name in ["records/wal/0001.sst", "records/manifest/0001.manifest", "records/compacted/1.sst"] {
            assert_eq!(kinds(name), (false, true), "{prefix}{name}");
        }
        for folder in [LOG, MANIFESTS, TABLES] {
            assert!(is_in(&of(&format!("records/{folder}/1")), folder), "{prefix}");
            assert!(!is_in(&of("data/00/12ab"), folder) && !is_in(&of("records/whole"), folder), "{prefix}");
            assert!(!is_in(&of("records/none/1"), folder), "{prefix}");
        }
        assert_eq!(kinds("records/gc/compactor.boundary"), (false, false), "{prefix}");
        assert_eq!((kinds("holder"), kinds("clients")), ((false, false), (false, false)), "{prefix}");
    }
}
