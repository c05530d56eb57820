<?php
// /wait: a request that waits for a given time.
Outboard\serve(static function (Outboard\Request $request): string {
    if ($request->path() === '/wait') {
        Outboard\sleep((float) $request->query('seconds'));
    }
    return 'ok';
});
