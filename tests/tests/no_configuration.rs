//! `outboard serve DIR` alone runs an application: nothing is configured here.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Docroot, Request, Server, Site};

fn visitor(server: &Server) -> Client {
    Client::new(server.address())
}

#[test]
fn a_folder_with_a_public_folder_is_a_project() {
    let project = Docroot::of("symfony");
    project.writable("var");
    let server = Server::of_folder(project.path());
    let mut visitor = visitor(&server);
    visitor.get("/").expect(200).holding("Symfony &amp; Debian");
    visitor.get("/en/articles/first-article").expect(200).holding("FIRST-ARTICLE");
    visitor.get("/style.css").expect(200).holding("font-family");
    for hidden in ["/src/Kernel.php", "/templates/home.html.twig", "/../src/Kernel.php"] {
        let response = visitor.send(&Request::get(hidden));
        assert!(response.status >= 400, "{hidden}: {}", response.status);
        assert!(!response.text().contains("namespace App"), "{hidden}");
    }
}

#[test]
fn a_folder_with_an_index_serves_files_scripts_and_the_rest() {
    let docroot = Docroot::of("fidelity");
    let server = Server::of_folder(docroot.path());
    let mut visitor = visitor(&server);
    visitor.get("/hello.php").expect(200).saying("Hello, world\n");
    visitor.get("/folder/").expect(200).holding("folder index");
    visitor.get("/nested/deeper/sibling.txt").expect(200).saying("sibling\n");
    visitor.get("/no/such/page").expect(200).saying("front controller: /no/such/page /index.php\n");
    visitor.get("/session.php").expect(200).holding("visits 1");
    assert_ne!(visitor.send(&Request::get("/small/.user.ini")).status, 200);
}

#[test]
fn a_folder_without_php_is_a_site_of_files() {
    let docroot = Docroot::copy(&Docroot::of("fidelity").path().join("folder"));
    std::fs::remove_file(docroot.path().join("index.php")).unwrap();
    docroot.put("index.html", "<h1>Files</h1>\n");
    let server = Server::of_folder(docroot.path());
    let mut visitor = visitor(&server);
    visitor.get("/").expect(200).saying("<h1>Files</h1>\n");
    visitor.get("/missing").expect(404);
}

#[test]
fn a_file_that_x_sendfile_names_is_sent() {
    let docroot = Docroot::of("fidelity");
    let server = Server::of_folder(docroot.path());
    let mut visitor = visitor(&server);
    let inside = docroot.path().join("nested/deeper/sibling.txt");
    let target = format!("/sendfile.php?file={}", inside.display());
    let response = visitor.get(&target).expect(200).saying("sibling\n");
    assert_eq!(response.header("x-sendfile"), None);
    let part = visitor.send(&Request::get(&target).header("Range", "bytes=0-2"));
    part.expect(206).saying("sib");
    let outside = visitor.get("/sendfile.php?file=/etc/passwd");
    assert!(outside.status >= 400 && !outside.text().contains("root:"), "{}", outside.text());
}
