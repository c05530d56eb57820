//! From a URL to a script: folders, escapes, scripts that are missing or unreadable.

use crate::{bench, pair};
use outboard_e2e::{Docroot, Pair, Request};
use std::os::unix::fs::PermissionsExt;

#[track_caller]
fn same(target: &str) -> outboard_e2e::Response {
    pair().same(&Request::get(target))
}

#[test]
fn a_folder_answers_with_its_index() {
    same("/folder/").expect(200).holding("folder index /folder/index.php");
    same("/folder/?a=b").expect(200).holding("/folder/?a=b");
}

#[test]
fn a_folder_without_its_slash_redirects() {
    let mut visit = pair().visit();
    for client in [&mut visit.reference, &mut visit.subject] {
        let response = client.send(&Request::get("/folder")).expect(301);
        assert!(response.header("location").is_some_and(|to| to.ends_with("/folder/")));
        let response = client.send(&Request::get("/folder?a=b")).expect(301);
        assert!(response.header("location").is_some_and(|to| to.ends_with("/folder/?a=b")));
    }
}

#[test]
fn paths_without_a_file_go_to_the_front_controller() {
    same("/no/such/page?x=1")
        .expect(200)
        .saying("front controller: /no/such/page?x=1 /index.php\n");
    same("/").expect(200).holding("front controller: /");
    same("/index.php/path/info").expect(200);
    same("/with%20space/%C3%BC").expect(200).holding("/with%20space/%C3%BC");
}

/// Without a front controller; with one, Outboard gives it every path that no file answers (as
/// Apache's `FallbackResource`), where nginx's usual `try_files $uri $uri/` stops at missing scripts
/// and at folders.
#[test]
fn a_script_that_is_missing_is_404_and_a_folder_is_not_listed() {
    let docroot = Docroot::copy(&bench().docroot.path().join("nested"));
    std::fs::create_dir(docroot.path().join("empty")).unwrap();
    let pair = Pair::start(&docroot.app());
    let mut visit = pair.visit();
    for client in [&mut visit.reference, &mut visit.subject] {
        client.send(&Request::get("/deeper/working_directory.php")).expect(200);
        client.send(&Request::get("/missing.php")).expect(404);
        client.send(&Request::get("/deeper/missing.php")).expect(404);
        client.send(&Request::get("/missing.php/with/path")).expect(404);
        client.send(&Request::get("/empty/")).expect(403);
        client.send(&Request::get("/deeper/sibling.txt")).expect(200).saying("sibling\n");
        client.send(&Request::get("/missing")).expect(404);
    }
}

#[test]
fn escaped_paths_find_scripts_with_odd_names() {
    let target = "/folder/with%20space/scr%C3%ADpt%20%C3%BC.php?q=%20";
    same(target).expect(200).holding("scrípt ü.php");
    same("/%68ello.php").expect(200).saying("Hello, world\n");
    same("/folder/../hello.php").expect(200).saying("Hello, world\n");
    same("//hello.php").expect(200).saying("Hello, world\n");
    same("/./folder/./index.php").expect(200);
}

#[test]
fn no_path_leads_out_of_the_root() {
    let mut visit = pair().visit();
    for target in ["/../secret.txt", "/%2e%2e/secret.txt", "/folder/%2e%2e/%2e%2e/secret.txt"] {
        for client in [&mut visit.reference, &mut visit.subject] {
            let response = client.send(&Request::get(target));
            assert_eq!(response.status, 400, "{target}");
        }
    }
}

#[test]
fn hidden_files_are_hidden() {
    let mut visit = pair().visit();
    for client in [&mut visit.reference, &mut visit.subject] {
        let response = client.send(&Request::get("/small/.user.ini"));
        assert!(matches!(response.status, 403 | 404), "{}", response.status);
        assert!(!response.text().contains("post_max_size"));
    }
}

#[test]
fn a_script_that_cannot_be_read_is_refused() {
    let path = bench().docroot.path().join("unreadable.php");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o0)).unwrap();
    let mut visit = pair().visit();
    for client in [&mut visit.reference, &mut visit.subject] {
        let response = client.send(&Request::get("/unreadable.php"));
        assert!(matches!(response.status, 403 | 404), "{}", response.status);
        assert!(!response.text().contains("secret"));
    }
}

#[test]
fn includes_and_working_directory_are_relative_to_the_script() {
    same("/include.php").expect(200).holding("included.inc");
    same("/working_directory.php").expect(200).holding("\"relative file\":true");
    same("/nested/deeper/working_directory.php").expect(200).holding("\"relative file\":true");
    same("/nested/deeper/working_directory.php/path").expect(200);
}
