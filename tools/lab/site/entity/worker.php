<?php
// Ten thousand values of 32 bytes, stored in three places and read in three ways.
$ids = array_map(static fn (int $number): string => "key$number", range(0, 9_999));
$values = array_combine($ids, array_map(md5(...), $ids));
array_walk($values, static fn (string $value, string $id) => apcu_store($id, $value));

Outboard\serve(static function (Outboard\Request $request) use ($ids, $values): string {
    static $kv = null;
    if ($kv === null) {
        $kv = new Outboard\KV();
        $kv->putMany($values);
    }
    $read = '';
    switch ($request->path()) {
        case '/getMany':
            foreach ($kv->getMany($ids) as $value) {
                $read .= $value;
            }
            break;
        case '/apcu_fetch':
            foreach ($ids as $id) {
                $read .= apcu_fetch($id);
            }
            break;
        case '/array':
            foreach ($ids as $id) {
                $read .= $values[$id];
            }
            break;
    }
    return strlen($read) . ' ' . hash('crc32b', $read);
});
