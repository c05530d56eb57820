<?php
// Worker mode: requests and tasks.
require __DIR__ . '/calls.php';

Outboard\on_task('lab', static fn (array $data): array => $data);
Outboard\serve(static fn (Outboard\Request $request): string => measured($request->query('call')));
