// kernel.cu - a program compiled by nvcc and linked with hostcuda: its host part runs, its kernel cannot.
#include <cstdio>

__global__ void scale_all(float *data, float factor, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        data[i] *= factor;
}

int main()
{
    float host[64], back[64] = {}, *device = nullptr;
    cudaDeviceProp properties;
    cudaPointerAttributes attributes;

    for (int i = 0; i < 64; i++)
        host[i] = (float)i;
    printf("properties %d\n", (int)cudaGetDeviceProperties(&properties, 1));
    printf("warp %d\n", properties.warpSize);
    printf("major %d\n", properties.major >= 7);
    printf("malloc %d\n", (int)cudaMalloc(&device, sizeof(host)));
    printf("to %d\n", (int)cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
    printf("attributes %d\n", (int)cudaPointerGetAttributes(&attributes, device));
    printf("type %d\n", (int)attributes.type);
    scale_all<<<2, 32>>>(device, 2.0f, 64);
    printf("launch %d\n", (int)cudaGetLastError());
    printf("synchronize %d\n", (int)cudaDeviceSynchronize());
    printf("from %d\n", (int)cudaMemcpy(back, device, sizeof(host), cudaMemcpyDeviceToHost));
    printf("value %d\n", (int)back[63]);
    printf("free %d\n", (int)cudaFree(device));
    return 0;
}
