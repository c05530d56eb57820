<?php

/**
 * The only script that the web server runs: every pretty URL ends here.
 *
 * Selects the handler of a request, and turns any error into a page or a JSON object.
 */

declare(strict_types=1);

namespace Guestbook;

use Throwable;

spl_autoload_register(static function (string $class): void {
    require dirname(__DIR__) . '/src/' . substr($class, strlen(__NAMESPACE__) + 1) . '.php';
});

$request = Request::current();
try {
    $response = respond($request);
} catch (Problem $problem) {
    $response = $request->isForApi() ? Api::problem($problem) : Pages::problem($problem);
} catch (Throwable $error) {
    error_log((string) $error);
    $problem = new Problem(500, 'Something went wrong here. It has been written down.');
    $response = $request->isForApi() ? Api::problem($problem) : Pages::problem($problem);
}
$response->send();

function respond(Request $request): Response
{
    $directory = DataDirectory::open();
    $workers = new Workers($directory->below('workers'));
    $workers->count();

    $entries = new Entries(Database::open($directory->path . '/guestbook.sqlite'));
    $pictures = new Pictures($directory->below('pictures'));
    $pages = new Pages($entries, $pictures, $workers, new Visitor());
    $api = new Api($entries);

    return match ($request->path) {
        '/' => $request->dispatch(GET: $pages->entries(...), POST: $pages->sign(...)),
        '/sign-out' => $request->dispatch(POST: $pages->signOut(...)),
        '/about' => $request->dispatch(GET: $pages->about(...)),
        '/api/entries' => $request->dispatch(GET: $api->list(...), POST: $api->create(...)),
        default => match (true) {
            $request->has('~^/pictures/([a-z0-9.]+)$~', $name)
                => $request->dispatch(GET: fn () => $pictures->send($name, $request)),
            $request->has('~^/api/entries/([1-9][0-9]{0,17})$~', $id)
                => $request->dispatch(GET: fn () => $api->show((int) $id)),
            default => throw new Problem(404, 'There is no page at this address.'),
        },
    };
}
