<?php
/** The backend's response, fetched by PHP. */
function outside(): string
{
    $curl = curl_init('http://@BACKEND@/@LATENCY@');
    curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 5]);
    return (string) curl_exec($curl);
}
