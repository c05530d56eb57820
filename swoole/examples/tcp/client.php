<?php

/** Sends messages to the server of this example: php client.php '{"operation": "balance"}' ... */

$address = getenv('ADDRESS') ?: '127.0.0.1:9502';
$connection = stream_socket_client("tcp://$address", $code, $error, 5) ?: exit("$error\n");
foreach (array_slice($argv, 1) as $json) {
    fwrite($connection, pack('N', strlen($json)) . $json);
    $length = unpack('N', stream_get_contents($connection, 4))[1];
    echo stream_get_contents($connection, $length), "\n";
}
